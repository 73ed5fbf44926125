// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "models/backend/device/device_backend.h"
#include "models/backend/device/device_chooser.h"
#include "models/model.h"

namespace outrider {

// Chooses tokens from the logits of passes where these lie, so that this machine reads tokens and no logits.
class PassChoices {
 public:
  struct Shape {
    int64_t max_rows = 0;
    int64_t vocab_size = 0;  // ids that may be chosen: [0, vocab_size)
    std::span<const TokenId> unused = {};
  };
  // The model must outlive it. Null: its logits do not lie on a device, which has room. Throws no exception.
  static std::unique_ptr<PassChoices> make(Model& model, const Shape& shape);

  int64_t max_rows() const { return shape_.max_rows; }
  // The tokens after the first rows of the last pass's logits, in which unused tokens become -infinity. They
  // get these places in their texts. A row has token -1 where it has no parameters, or where no token has a
  // probability. Valid until the next call.
  std::span<const TokenId> choose(std::span<const ChoiceRow> rows, std::span<const int> places);

 private:
  PassChoices(DeviceBackend& backend, Model& model, const Shape& shape);

  // A list for up to so many rows of logits that lie there.
  struct Recorded {
    std::unique_ptr<LoadedList> list;
    FloatAddress logits;
  };
  // False: the device takes no list.
  bool run_list(int64_t rows);

  DeviceBackend& backend_;
  Model& model_;
  Shape shape_;
  DeviceChooser chooser_;
  DeviceNumbers<int> places_;
  std::map<int64_t, Recorded> lists_;
  std::vector<int> chosen_, placed_;
};

}  // namespace outrider
