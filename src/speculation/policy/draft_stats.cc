// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/draft_stats.h"

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

constexpr double kMaxSteps = 48.0;  // window of the fading means
constexpr double kMaxTimes = 24.0;  // window of the times, short because the first drafts run on cold caches
constexpr double kMaxSurprise = 2.0;  // a time counts as at most this multiple of the expected one

}  // namespace

void DraftTime::learn(double new_ms) {
  steps = std::min(steps + 1.0, kMaxTimes);
  if (steps > 1.0) new_ms = std::min(new_ms, kMaxSurprise * ms);
  ms += (new_ms - ms) / steps;
}

// The few tokens missed in a short pause are read in one pass with the pending token; the variance added here
// keeps noise between short pauses from determining the slope.
double PrefillTime::slope() const {
  constexpr double kSmoothing = 16.0;
  return std::max(0.0, covariance_) / (variance_ + kSmoothing * kSmoothing);
}

double PrefillTime::ms_of(double tokens) const {
  return tokens == 0.0 ? 0.0 : std::max(0.0, ms_ + slope() * (tokens - tokens_));
}

void PrefillTime::learn(double new_ms, double new_tokens) {
  // The only time so far counts as a stall where this one, for about as many tokens, is far below it.
  if (steps_ == 1.0 && 2.0 * new_tokens >= tokens_) ms_ = std::min(ms_, 2.0 * kMaxSurprise * new_ms);
  steps_ = std::min(steps_ + 1.0, kMaxTimes);
  if (steps_ > 1.0)
    new_ms = std::min(new_ms, kMaxSurprise * std::max(ms_of(new_tokens), ms_ * new_tokens / tokens_));
  const double weight = 1.0 / steps_;
  const double longer = new_tokens - tokens_, slower = new_ms - ms_;
  tokens_ += weight * longer;
  ms_ += weight * slower;
  variance_ = (1.0 - weight) * (variance_ + weight * longer * longer);
  covariance_ = (1.0 - weight) * (covariance_ + weight * longer * slower);
}

void DraftStats::learn(double new_gain, double new_rows) {
  steps = std::min(steps + 1.0, kMaxSteps);
  const double surprise = new_gain - gain;
  variance += (surprise * surprise - variance) / (steps + kPriorSteps);
  gain += surprise / steps;
  rows += (new_rows - rows) / steps;
}

void DraftStats::learn_run(double new_steps) {
  runs = std::min(runs + 1.0, kMaxTimes);
  run_steps += (new_steps - run_steps) / (runs + 1.0);
}

void DraftStats::become_prior() {
  for (double* known : {&steps, &draft.steps, &runs}) *known = std::min(*known, kPriorSteps);
  prefill.become_prior();
}

void DraftStats::fade_into(const DraftStats& all) {
  constexpr double kFading = 0.03;
  if (steps <= kPriorSteps) return;
  steps += kFading * (kPriorSteps - steps);
  gain += kFading * (all.gain - gain);
  variance += kFading * (all.variance - variance);
  rows += kFading * (all.rows - rows);
}

void DraftForecast::change(const DraftStats& one, double prefill_tokens, double sign) {
  drafting += sign;
  tokens += sign * one.gain;
  rows += sign * one.rows;
  draft_ms += sign * (one.draft.ms + one.prefill.ms_of(prefill_tokens) / one.run_steps);
  steps += sign * one.steps;
  variance += sign * one.variance_of_gain();
}

DraftForecast DraftForecast::optimistic(double variance_of_tokens) const {
  DraftForecast best = *this;
  best.tokens += std::sqrt(std::max(0.0, variance_of_tokens));
  return best;
}

}  // namespace outrider
