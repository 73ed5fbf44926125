// SPDX-License-Identifier: Apache-2.0
#include "sampling/distribution.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace outrider {

bool is_proper(const Distribution& distribution) {
  constexpr double kTolerance = 1e-6;
  if (distribution.tokens.size() != distribution.probabilities.size()) return false;
  double sum = 0.0;
  TokenId previous = -1;
  for (size_t i = 0; i < distribution.tokens.size(); ++i) {
    if (distribution.tokens[i] <= previous || !(distribution.probabilities[i] >= 0.0)) return false;
    previous = distribution.tokens[i];
    sum += distribution.probabilities[i];
  }
  return std::abs(sum - 1.0) <= kTolerance;
}

double probability(const Distribution& distribution, TokenId token) {
  const auto found = std::lower_bound(distribution.tokens.begin(), distribution.tokens.end(), token);
  if (found == distribution.tokens.end() || *found != token) return 0.0;
  return distribution.probabilities[static_cast<size_t>(found - distribution.tokens.begin())];
}

}  // namespace outrider
