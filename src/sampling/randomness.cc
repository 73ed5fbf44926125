// SPDX-License-Identifier: Apache-2.0
#include "sampling/randomness.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace outrider {

size_t inverse_cdf(std::span<const double> weights, double u) {
  const double threshold = u * std::accumulate(weights.begin(), weights.end(), 0.0);
  double passed = 0.0;
  size_t last_positive = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] > 0.0)) continue;
    passed += weights[i];
    last_positive = i;
    if (passed > threshold) break;
  }
  return last_positive;
}

// The arg max of log p + g is the first arrival of a race of exponentials e^-g / p: one logarithm per token
// instead of three.
double CounterRandomness::arrival(const Distribution& law, size_t i, int64_t position) const {
  const auto token = static_cast<uint64_t>(law.tokens[i]);
  return random_exponential({seed_, stream_, position, RandomPurpose::kToken, token}) / law.probabilities[i];
}

TokenId CounterRandomness::coupled_pick(const Distribution& law, int64_t position) {
  size_t first = 0;
  double first_arrival = arrival(law, 0, position);
  for (size_t i = 1; i < law.tokens.size(); ++i) {
    const double candidate = arrival(law, i, position);
    if (candidate < first_arrival) {
      first = i;
      first_arrival = candidate;
    }
  }
  return law.tokens[first];
}

std::vector<TokenId> CounterRandomness::coupled_top(const Distribution& law, int64_t position, int count) {
  std::vector<std::pair<double, TokenId>> arrivals;  // ascending pairs: ties go to the lower id
  arrivals.reserve(law.tokens.size());
  for (size_t i = 0; i < law.tokens.size(); ++i) {
    arrivals.emplace_back(arrival(law, i, position), law.tokens[i]);
  }
  const size_t kept = std::min(arrivals.size(), static_cast<size_t>(std::max(count, 0)));
  std::partial_sort(arrivals.begin(), arrivals.begin() + static_cast<ptrdiff_t>(kept), arrivals.end());
  std::vector<TokenId> tokens(kept);
  std::transform(arrivals.begin(), arrivals.begin() + static_cast<ptrdiff_t>(kept), tokens.begin(),
                 [](const auto& entry) { return entry.second; });
  return tokens;
}

size_t CounterRandomness::categorical(std::span<const double> weights, int64_t position,
                                      RandomPurpose purpose, uint64_t draw) {
  return inverse_cdf(weights, random_uniform({seed_, stream_, position, purpose, draw}));
}

bool CounterRandomness::bernoulli(double p, int64_t position, uint64_t draw) {
  return passes(p, random_uniform({seed_, stream_, position, RandomPurpose::kAccept, draw}));
}

}  // namespace outrider
