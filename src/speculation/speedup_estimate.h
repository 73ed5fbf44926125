// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace outrider {

// Of late: time that plain decoding would have taken over time taken.
class SpeedupEstimate {
 public:
  void learn(double plain_ms, double ms) {
    constexpr double kRememberedMs = 10000.0;
    const double kept = std::exp(-ms / kRememberedMs);
    plain_ms_ = kept * plain_ms_ + plain_ms;
    spent_ms_ = kept * spent_ms_ + ms;
  }
  double value() const { return spent_ms_ > 0.0 ? plain_ms_ / spent_ms_ : 0.0; }  // 0: not known

 private:
  double plain_ms_ = 0.0, spent_ms_ = 0.0;
};

}  // namespace outrider
