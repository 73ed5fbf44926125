// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace outrider::training {

// The learning rate rises linearly to `peak` over `warmup` steps, then falls along half a cosine, or a line,
// to `final` at the last step.
struct RateSchedule {
  double peak = 2e-3;
  double final = 2e-4;
  int64_t warmup = 200;
  int64_t steps = 1;
  bool is_linear = false;

  double at(int64_t step) const {
    if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
    const double span = static_cast<double>(std::max<int64_t>(1, steps - 1 - warmup));
    const double progress = std::min(1.0, static_cast<double>(step - warmup) / span);
    if (is_linear) return peak + (final - peak) * progress;
    return final + (peak - final) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  }
};

}  // namespace outrider::training
