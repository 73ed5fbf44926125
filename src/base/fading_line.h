// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

namespace outrider {

// A linear regression of times on counts, in which older pairs fade.
class FadingLine {
 public:
  // max_weight: of all pairs, in pairs. smoothing: deviation of the counts below which differences of times
  // are mostly noise, and make little slope.
  FadingLine(double max_weight, double smoothing) : max_weight_(max_weight), smoothing_(smoothing) {}

  void learn(double count, double ms) {
    weight_ = std::min(weight_ + 1.0, max_weight_);
    const double share = 1.0 / weight_, more = count - count_, slower = ms - ms_;
    count_ += share * more;
    ms_ += share * slower;
    variance_ = (1.0 - share) * (variance_ + share * more * more);
    covariance_ = (1.0 - share) * (covariance_ + share * more * slower);
  }

  // ms per count, at least 0.
  double slope() const { return std::max(0.0, covariance_) / (variance_ + smoothing_ * smoothing_); }
  double ms_of(double count) const { return std::max(0.0, ms_ + slope() * (count - count_)); }
  double weight() const { return weight_; }
  double mean_ms() const { return ms_; }
  double mean_count() const { return count_; }

  void limit_weight(double weight) { weight_ = std::min(weight_, weight); }
  void limit_mean_ms(double ms) { ms_ = std::min(ms_, ms); }

 private:
  double max_weight_, smoothing_;
  double weight_ = 0.0;                       // of the means, in pairs
  double count_ = 0.0, ms_ = 0.0;             // means
  double variance_ = 0.0, covariance_ = 0.0;  // of the counts; of counts and times
};

}  // namespace outrider
