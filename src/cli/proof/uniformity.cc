// SPDX-License-Identifier: Apache-2.0
#include "cli/proof/uniformity.h"

#include <algorithm>
#include <cmath>

namespace outrider {

double UniformSample::deviation() const {
  std::vector<double> sorted = numbers_;
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  double distance = 0.0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const auto below = static_cast<double>(i);
    distance = std::max({distance, sorted[i] - below / count, (below + 1.0) / count - sorted[i]});
  }
  return distance * std::sqrt(count);
}

}  // namespace outrider
