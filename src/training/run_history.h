// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace outrider::training {

struct LossPoint {
  int64_t step = 0;
  double loss = 0.0;
};

// Losses of a run so far: `training` are means since the previous point.
struct RunHistory {
  std::vector<LossPoint> training;
  std::vector<LossPoint> held_out;
};

}  // namespace outrider::training
