// SPDX-License-Identifier: Apache-2.0
#include "drafters/carried_states.h"

namespace outrider {

CarriedStates::CarriedStates(Launcher& launcher, int64_t size, int64_t rows, const DeviceDraft::Shape& shape)
    : launcher_(launcher),
      size_(size),
      most_(shape.max_tokens + 1),
      states_(launcher.device(), shape.max_sequences * most_ * size),
      before_(launcher.device(), rows),
      firsts_(launcher.device(), shape.max_sequences) {}

FloatAddress CarriedStates::of_sequence(int64_t index) const {
  return FloatAddress(states_.address()) + index * most_ * size_;
}

simt::CarriedRows CarriedStates::view() const {
  return {.before = before_.rows(), .firsts = firsts_.list(), .of_sequence = static_cast<int>(most_)};
}

// An entry's state follows the state of the entry before.
void CarriedStates::record_keep(const Part& part) {
  const int64_t first = size_ + part.column;
  launcher_.launch_items(KernelName::kCopyListedRows,
                         simt::ListedCopyArgs{.x = rows_at<const float>(part.numbers, part.rows * part.dim),
                                              .y = {states_.rows().data + first, states_.count() - first},
                                              .from = {},
                                              .to = rows_at<const int>(before_.address(), part.rows),
                                              .factors = {},
                                              .rows = static_cast<int>(part.rows),
                                              .dim = static_cast<int>(part.dim),
                                              .x_stride = static_cast<int>(part.dim),
                                              .y_stride = static_cast<int>(size_)},
                         part.rows * ((part.dim + simt::kWarp - 1) / simt::kWarp));
}

void CarriedStates::record_bring(const Part& part) {
  launcher_.launch_items(
      KernelName::kCopyListedRows,
      simt::ListedCopyArgs{.x = {states_.rows().data + part.column, states_.count() - part.column},
                           .y = rows_at<float>(part.numbers, part.rows * part.dim),
                           .from = rows_at<const int>(before_.address(), part.rows),
                           .to = {},
                           .factors = {},
                           .rows = static_cast<int>(part.rows),
                           .dim = static_cast<int>(part.dim),
                           .x_stride = static_cast<int>(size_),
                           .y_stride = static_cast<int>(part.dim)},
      part.rows * ((part.dim + simt::kWarp - 1) / simt::kWarp));
}

}  // namespace outrider
