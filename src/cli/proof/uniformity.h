// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace outrider {

// Numbers that should be drawn uniformly from [0, 1), independently of each other.
class UniformSample {
 public:
  // Uniform numbers deviate more once in 8,000 samples.
  static constexpr double kMaxDeviation = 2.2;

  void add(double u) { numbers_.push_back(u); }
  int64_t count() const { return static_cast<int64_t>(numbers_.size()); }
  // Kolmogorov's statistic: the largest distance of the sample's distribution function from the uniform one,
  // times the root of the count.
  double deviation() const;

 private:
  std::vector<double> numbers_;
};

}  // namespace outrider
