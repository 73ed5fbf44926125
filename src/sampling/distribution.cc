// SPDX-License-Identifier: Apache-2.0
#include "sampling/distribution.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace outrider {

bool is_proper(const Distribution& law) {
  constexpr double kTolerance = 1e-6;
  if (law.tokens.size() != law.probabilities.size()) return false;
  double sum = 0.0;
  TokenId previous = -1;
  for (size_t i = 0; i < law.tokens.size(); ++i) {
    if (law.tokens[i] <= previous || !(law.probabilities[i] >= 0.0)) return false;
    previous = law.tokens[i];
    sum += law.probabilities[i];
  }
  return std::abs(sum - 1.0) <= kTolerance;
}

double probability(const Distribution& law, TokenId token) {
  const auto found = std::lower_bound(law.tokens.begin(), law.tokens.end(), token);
  if (found == law.tokens.end() || *found != token) return 0.0;
  return law.probabilities[static_cast<size_t>(found - law.tokens.begin())];
}

}  // namespace outrider
