// SPDX-License-Identifier: Apache-2.0
#include "sampling/randomness.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/portable_math.h"
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
double arrival(const Distribution& distribution, size_t i, uint64_t noise) {
  return exponential_of(mix64(noise ^ static_cast<uint64_t>(distribution.tokens[i]))) /
         distribution.probabilities[i];
}

// Collects the `capacity` first arrivals, ascending.
class Podium {
 public:
  Podium(size_t capacity, std::vector<Arrival>& arrivals) : capacity_(capacity), arrivals_(arrivals) {
    arrivals_.clear();
  }

  bool is_full() const { return arrivals_.size() == capacity_; }
  double last_time() const { return arrivals_.back().time; }
  // Returns whether the arrival is among the first.
  bool enter(const Arrival& arrival) {
    if (is_full() && !(arrival < arrivals_.back())) return false;
    if (is_full()) arrivals_.pop_back();
    arrivals_.insert(std::upper_bound(arrivals_.begin(), arrivals_.end(), arrival), arrival);
    return true;
  }

 private:
  size_t capacity_;
  std::vector<Arrival>& arrivals_;
};

// The race among all tokens with weights e^((logit - largest) / temperature). A token can be among the first
// only if its exponential E is below last_time * weight. E = -log u >= 1 - u, and the top bits of the noise
// say 1 - u. Almost every token is therefore out after a look at a table of bounds by whole steps of the log
// weight.
class LogitRace {
 public:
  LogitRace(std::span<const float> logits, float largest, double temperature, uint64_t noise)
      : logits_(logits), largest_(largest), temperature_(temperature), noise_(noise) {
    std::fill(std::begin(bounds_), std::end(bounds_), ~uint64_t{0});
  }

  // `first`: a token that is likely to come early; starting with it rules out more.
  void run(Podium& podium, TokenId first) {
    constexpr double kLargestScale = std::numeric_limits<float>::max();
    const auto scale = static_cast<float>(std::min(1.0 / temperature_, kLargestScale));
    enter(podium, first, mix64(noise_ ^ static_cast<uint64_t>(first)));
    for (size_t i = 0; i < logits_.size(); ++i) {
      const uint64_t bits = mix64(noise_ ^ static_cast<uint64_t>(i));
      const float steps = (largest_ - logits_[i]) * scale;
      // The test is also false for NaN. Beyond the last step no double of the race could come first.
      if (!(steps < static_cast<float>(kSteps))) continue;
      if (~bits >> 12 <= bounds_[static_cast<size_t>(steps)] && static_cast<TokenId>(i) != first)
        enter(podium, static_cast<TokenId>(i), bits);
    }
  }

 private:
  // 1 - u >= 2^-53 and first arrivals are at most 36.8, so that weights below e^-41 never win.
  static constexpr int kSteps = 64;
  // The margin covers the rounding of `steps`.
  static constexpr double kMargin = 1.001;

  void enter(Podium& podium, TokenId token, uint64_t bits) {
    const double logit = logits_[static_cast<size_t>(token)];
    const double weight = portable_exp((logit - static_cast<double>(largest_)) / temperature_);
    if (!podium.enter({exponential_of(bits) / weight, token}) || !podium.is_full()) return;
    double bound = podium.last_time() * kMargin * 0x1.0p52;
    for (uint64_t& by_step : bounds_) {
      by_step = bound >= 0x1.0p52 ? ~uint64_t{0} : static_cast<uint64_t>(bound);
      bound *= 0.36787944117144233;  // 1 / e
    }
  }

  std::span<const float> logits_;
  float largest_;
  double temperature_;
  uint64_t noise_;
  uint64_t bounds_[kSteps];  // by step: bound of the noise's complement for weights up to e^-step
};

}  // namespace

TokenId CounterRandomness::coupled_pick(const Distribution& distribution, int64_t position) {
  const uint64_t noise = noise_at(position);
  Arrival first{arrival(distribution, 0, noise), distribution.tokens[0]};
  for (size_t i = 1; i < distribution.tokens.size(); ++i) {
    first = std::min(first, Arrival{arrival(distribution, i, noise), distribution.tokens[i]});
  }
  return first.token;
}

void CounterRandomness::coupled_race(const Distribution& distribution, int64_t position, int count,
                                     std::vector<Arrival>& arrivals) const {
  const uint64_t noise = noise_at(position);
  Podium podium(static_cast<size_t>(count), arrivals);
  for (size_t i = 0; i < distribution.tokens.size(); ++i)
    podium.enter({arrival(distribution, i, noise), distribution.tokens[i]});
}

void CounterRandomness::coupled_race(std::span<const float> logits, double temperature, int64_t position,
                                     int count, std::vector<Arrival>& arrivals) const {
  const LargestLogit largest = largest_logit(logits);
  const uint64_t noise = noise_at(position);
  Podium podium(static_cast<size_t>(count), arrivals);
  if (largest.token < 0) return;
  if (largest.value < std::numeric_limits<float>::infinity()) {
    LogitRace(logits, largest.value, temperature, noise).run(podium, largest.token);
    return;
  }
  // Infinite logits share all mass.
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != largest.value) continue;
    podium.enter({exponential_of(mix64(noise ^ static_cast<uint64_t>(i))), static_cast<TokenId>(i)});
  }
}

std::vector<TokenId> CounterRandomness::coupled_top(const Distribution& distribution, int64_t position,
                                                    int count) {
  std::vector<Arrival> arrivals;
  if (count > 0) coupled_race(distribution, position, count, arrivals);
  std::vector<TokenId> tokens(arrivals.size());
  std::transform(arrivals.begin(), arrivals.end(), tokens.begin(),
                 [](const Arrival& arrival) { return arrival.token; });
  return tokens;
}

size_t CounterRandomness::categorical(std::span<const double> weights, int64_t position,
                                      RandomPurpose purpose, uint64_t draw) {
  return inverse_cdf(weights, random_uniform({seed_, sample_index_, position, purpose, draw}));
}

bool CounterRandomness::bernoulli(double p, int64_t position, uint64_t draw) {
  return passes(p, random_uniform({seed_, sample_index_, position, RandomPurpose::kAccept, draw}));
}

}  // namespace outrider
