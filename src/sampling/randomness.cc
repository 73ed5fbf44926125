// SPDX-License-Identifier: Apache-2.0
#include "sampling/randomness.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "sampling/logit_scan.h"

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

namespace {

// The arg max of log p + g is the first arrival of a race of exponentials e^-g / p: one logarithm per token
// instead of three.
double arrival(const Distribution& law, size_t i, uint64_t noise) {
  return exponential_of(mix64(noise ^ static_cast<uint64_t>(law.tokens[i]))) / law.probabilities[i];
}

// Race among all tokens with weights e^((logit - largest) / temperature). A token can come first only if its
// exponential E is below first_arrival * weight; E = -log u >= 1 - u, and 1 - u is what the top bits of the
// noise say, so that almost every token is out after a look at a table of bounds by whole steps of the log
// weight.
class LogitRace {
 public:
  LogitRace(std::span<const float> logits, const LargestLogit& largest, double temperature, uint64_t noise)
      : logits_(logits), largest_(largest.value), temperature_(temperature), noise_(noise) {
    enter(largest.token, mix64(noise ^ static_cast<uint64_t>(largest.token)));
  }

  TokenId run() {
    constexpr double kLargestScale = std::numeric_limits<float>::max();
    const auto scale = static_cast<float>(std::min(1.0 / temperature_, kLargestScale));
    for (size_t i = 0; i < logits_.size(); ++i) {
      const uint64_t bits = mix64(noise_ ^ static_cast<uint64_t>(i));
      const float steps = (largest_ - logits_[i]) * scale;
      // Also false for NaN. Beyond the last step no double of the race could come first.
      if (!(steps < static_cast<float>(kSteps))) continue;
      if (~bits >> 12 <= bounds_[static_cast<size_t>(steps)]) enter(static_cast<TokenId>(i), bits);
    }
    return first_;
  }

 private:
  // 1 - u >= 2^-53 and first arrivals are at most 36.8, so that weights below e^-41 never win.
  static constexpr int kSteps = 64;
  // Covers the rounding of `steps`.
  static constexpr double kMargin = 1.001;

  void enter(TokenId token, uint64_t bits) {
    const double logit = logits_[static_cast<size_t>(token)];
    const double weight = std::exp((logit - static_cast<double>(largest_)) / temperature_);
    const double arrival = exponential_of(bits) / weight;
    if (first_ >= 0 && !(arrival < first_arrival_) && !(arrival == first_arrival_ && token < first_)) return;
    first_ = token;
    first_arrival_ = arrival;
    double bound = first_arrival_ * kMargin * 0x1.0p52;
    for (uint64_t& by_step : bounds_) {
      by_step = bound >= 0x1.0p52 ? ~uint64_t{0} : static_cast<uint64_t>(bound);
      bound *= 0.36787944117144233;  // 1 / e
    }
  }

  std::span<const float> logits_;
  float largest_;
  double temperature_;
  uint64_t noise_;
  TokenId first_ = -1;
  double first_arrival_ = 0;
  uint64_t bounds_[kSteps];  // of the noise's complement, for weights of at most e^-step
};

}  // namespace

TokenId CounterRandomness::coupled_pick(const Distribution& law, int64_t position) {
  const uint64_t noise = noise_at(position);
  size_t first = 0;
  double first_arrival = arrival(law, 0, noise);
  for (size_t i = 1; i < law.tokens.size(); ++i) {
    const double candidate = arrival(law, i, noise);
    if (candidate < first_arrival) {
      first = i;
      first_arrival = candidate;
    }
  }
  return law.tokens[first];
}

TokenId CounterRandomness::coupled_pick(std::span<const float> logits, double temperature,
                                        int64_t position) const {
  const LargestLogit largest = largest_logit(logits);
  const uint64_t noise = noise_at(position);
  if (largest.token < 0) return -1;
  if (largest.value < std::numeric_limits<float>::infinity()) {
    return LogitRace(logits, largest, temperature, noise).run();
  }
  // Infinite logits share all mass.
  TokenId first = -1;
  double first_arrival = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != largest.value) continue;
    const double candidate = exponential_of(mix64(noise ^ static_cast<uint64_t>(i)));
    if (first >= 0 && !(candidate < first_arrival)) continue;
    first = static_cast<TokenId>(i);
    first_arrival = candidate;
  }
  return first;
}

std::vector<TokenId> CounterRandomness::coupled_top(const Distribution& law, int64_t position, int count) {
  const uint64_t noise = noise_at(position);
  std::vector<std::pair<double, TokenId>> arrivals;  // ascending pairs: ties go to the lower id
  arrivals.reserve(law.tokens.size());
  for (size_t i = 0; i < law.tokens.size(); ++i) {
    arrivals.emplace_back(arrival(law, i, noise), law.tokens[i]);
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
