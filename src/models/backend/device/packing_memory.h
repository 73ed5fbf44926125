// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "models/backend/device/launcher.h"
#include "models/backend/float_address.h"

namespace outrider {

// Packed inputs have whole tiles of rows.
inline int padded_rows(int64_t rows) {
  return static_cast<int>((rows + simt::kTileRows - 1) / simt::kTileRows * simt::kTileRows);
}

// Remembers which rows were packed last, so that a product finds its inputs packed by the kernel that made
// them, or by a product before it.
//
// Invariant: while holds(rows) is true, the packing scratch has the codes of the numbers that are at these
// rows now. So any launch, copy, fill or upload, whoever orders it, makes it forget: it holds only while
// Launcher::writes() is what it was when remember() was called. A caller that knows that its own launches
// have written neither the rows nor the scratch may call remember() again after them. A recording, whose
// list runs at other times, begins and ends with forget().
class PackingMemory {
 public:
  // x[rows, k]
  struct Inputs {
    FloatAddress x;
    int64_t rows = 0;
    int64_t k = 0;
  };

  explicit PackingMemory(const Launcher& launcher) : launcher_(launcher) {}

  bool holds(const Inputs& inputs) const {
    return inputs_ && inputs_->x.address() == inputs.x.address() && inputs_->rows == inputs.rows &&
           inputs_->k == inputs.k && writes_ == launcher_.writes();
  }
  // Precondition: the last launches have packed the inputs, or left them and their codes as they were.
  void remember(const Inputs& inputs) {
    inputs_ = inputs;
    writes_ = launcher_.writes();
  }
  void forget() { inputs_.reset(); }

 private:
  const Launcher& launcher_;
  std::optional<Inputs> inputs_;
  int64_t writes_ = 0;  // when they were remembered
};

}  // namespace outrider
