// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "models/backend/device/device_backend.h"
#include "models/backend/device/device_chooser.h"
#include "models/backend/device/device_draft.h"
#include "models/backend/device/pass_rows.h"
#include "outrider/speculative_options.h"

namespace outrider {

// The rules of TreeGrowth for chains, as far as a device has the same: tokens are the chooser's, whatever
// their probabilities.
class DeviceGrowth {
 public:
  explicit DeviceGrowth(const SpeculativeOptions& options);
  // Whether the options ask for nothing else.
  bool makes_chains() const { return makes_chains_; }
  bool takes(const DraftRequest& request) const;
  SamplingParams sampling_of(const DraftRequest& request) const;

 private:
  bool makes_chains_;
  bool drafts_top_;            // children are the likeliest tokens
  double temperature_factor_;  // of drafts
};

// Chains that a network on a device drafts for a DeviceLoop: the rows of its passes, and the choices after
// them, for the lists that a DeviceDraft records.
class DeviceChains {
 public:
  struct Network {
    int64_t vocab_size = 0;  // ids that may be drafted
    int64_t row_size = 0;    // logits from row to row
    int page_size = 1;       // of its cache
    // The page size of the cache with the target's features; 0: it reads none. A network that reads them has
    // the entry of a token one place before the token, and computes the entries of accepted drafts anew.
    int feature_page_size = 0;
  };
  // Throws std::bad_alloc.
  DeviceChains(DeviceBackend& backend, const Network& network, const DeviceDraft::Shape& shape);

  // A sequence of a run, with its pages and with the pages of its features; without pages it drafts nothing.
  struct Row {
    DevicePassRows::Pages pages = {};
    DevicePassRows::Pages features = {};
    ChoiceRow choice = {};
  };
  void start(std::span<const Row> rows);

  struct Passes {
    // forward(batch, is_first): a pass over a batch, of which the first rows have logits. Returns these.
    std::function<FloatAddress(const ForwardBatch&, bool)> forward;
    // gather(rows): brings the features for the first pass; the recorded rows have their slots.
    std::function<void(int64_t)> gather = {};
  };
  void record(const simt::Chains& chains, DeviceList& list, const Passes& passes);
  // keep(rows): stores the features of the target's pass in the slots of the recorded rows.
  void record_features(const simt::Chains& chains, DeviceList& list,
                       const std::function<void(int64_t)>& keep);

 private:
  bool reads_features() const { return network_.feature_page_size != 0; }
  void record_pass(const simt::DraftChainsArgs& args, int64_t rows, const Passes& passes, bool is_first);

  DeviceBackend& backend_;
  Network network_;
  int blocks_;  // rows of a sequence in the first pass
  DevicePassRows rows_;
  DevicePassRows features_, kept_;  // read for the first pass, and written after the target's
  DeviceChooser chooser_;
  DeviceNumbers<int> going_;  // whether another level is drafted
};

}  // namespace outrider
