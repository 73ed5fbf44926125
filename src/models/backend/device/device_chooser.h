// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/backend/device/launcher.h"
#include "models/backend/float_address.h"
#include "outrider/sampling_params.h"
#include "outrider/token.h"

namespace outrider {

// How the token of a row is chosen; a row without parameters gets none.
struct ChoiceRow {
  const SamplingParams* sampling = nullptr;
  uint64_t sample = 0;           // see RandomKey::sample_index
  bool lists_likeliest = false;  // kernels that list tokens take the likeliest, and not the first in the race
};

// Chooses tokens from rows of logits on a device, with the tokens of CoupledChooser.
class DeviceChooser {
 public:
  struct Shape {
    int64_t rows = 0;        // most rows
    int64_t vocab_size = 0;  // tokens that may be chosen: [0, vocab_size)
    int64_t row_size = 0;    // logits from row to row
  };
  // unused: tokens that are never chosen.
  DeviceChooser(Device& device, const Shape& shape, std::span<const TokenId> unused);

  // Whether the parameters are temperature, top-k and min-p. All others need this machine.
  static bool can_choose(const SamplingParams& sampling);

  // The parameters of the first rows; all others get no token. The device waits for what runs.
  void set_rows(std::span<const ChoiceRow> rows);
  // Rows of logits, in which unused tokens become -infinity.
  struct Logits {
    FloatAddress numbers;
    simt::Rows<const int> places;  // [rows]: the positions of the tokens
    int64_t rows = 0;
    int64_t period = 0;  // row i has the parameters of row i % period
  };
  void choose(Launcher& launcher, const Logits& logits);
  // Launches what comes before the race, for kernels that choose several tokens of a row.
  simt::ChoiceArgs prepare(Launcher& launcher, const Logits& logits);
  // [rows]; -1: the row gets none, or no token has a probability.
  const DeviceNumbers<int>& chosen() const { return chosen_; }

 private:
  simt::ChoiceArgs args(const Logits& logits) const;

  Shape shape_;
  int64_t parts_;
  DeviceNumbers<int> unused_;
  DeviceNumbers<int> modes_;
  DeviceNumbers<double> limits_;
  DeviceNumbers<float> steepness_;
  DeviceNumbers<uint64_t> keys_;
  // Between the kernels, see ChoiceArgs:
  DeviceNumbers<float> largest_;
  DeviceNumbers<int> largest_tokens_, kept_, kept_tokens_;
  DeviceNumbers<double> kept_weights_, totals_, times_;
  DeviceNumbers<int> firsts_, arrivals_, chosen_;
};

}  // namespace outrider
