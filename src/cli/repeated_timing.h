// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>

namespace outrider {

// Timings of the same work. What disturbs one makes it longer: if the two least agree, they are the work's
// own; if they do not, the machine does something else.
class RepeatedTiming {
 public:
  static constexpr double kMaxSpread = 0.1;
  static constexpr int kFewest = 2, kMax = 6;

  void add(double ms) {
    second_ = std::clamp(ms, min_, second_);
    min_ = std::min(min_, ms);
    ++count_;
  }
  double min() const { return min_; }
  // How much longer the second took than the least, as a share of it.
  double spread() const { return count_ < kFewest || min_ <= 0.0 ? 0.0 : second_ / min_ - 1.0; }
  bool is_enough() const { return count_ >= kMax || (count_ >= kFewest && spread() <= kMaxSpread); }

 private:
  double min_ = std::numeric_limits<double>::infinity();
  double second_ = std::numeric_limits<double>::infinity();
  int count_ = 0;
};

}  // namespace outrider
