// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>

namespace outrider {

// Timings of the same work. A disturbance only makes a timing longer: if the two smallest agree, they are
// undisturbed; if they differ, the machine is busy.
class RepeatedTiming {
 public:
  static constexpr double kMaxSpread = 0.1;
  static constexpr int kMin = 2, kMax = 6;

  void add(double ms) {
    second_ = std::clamp(ms, min_, second_);
    min_ = std::min(min_, ms);
    ++count_;
  }
  double min() const { return min_; }
  // The difference between the two smallest timings, relative to the smallest.
  double spread() const { return count_ < kMin || min_ <= 0.0 ? 0.0 : second_ / min_ - 1.0; }
  bool is_enough() const { return count_ >= kMax || (count_ >= kMin && spread() <= kMaxSpread); }

 private:
  double min_ = std::numeric_limits<double>::infinity();
  double second_ = std::numeric_limits<double>::infinity();
  int count_ = 0;
};

}  // namespace outrider
