// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/draft_stats.h"

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

constexpr double kStepsRemembered = 48.0;
constexpr double kTimesRemembered = 24.0;  // the first ones run on cold caches
constexpr double kMaxSurprise = 2.0;

}  // namespace

void DraftTime::learn(double new_ms) {
  steps = std::min(steps + 1.0, kTimesRemembered);
  if (steps > 1.0) new_ms = std::min(new_ms, kMaxSurprise * ms);
  ms += (new_ms - ms) / steps;
}

// Tokens missed in a short pause are read beside others, and say nothing of what long prompts take.
double ReadingTime::slope() const {
  constexpr double kReadBeside = 16.0;
  return std::max(0.0, covariance_) / (variance_ + kReadBeside * kReadBeside);
}

double ReadingTime::ms_of(double tokens) const {
  return tokens == 0.0 ? 0.0 : std::max(0.0, ms_ + slope() * (tokens - tokens_));
}

void ReadingTime::learn(double new_ms, double new_tokens) {
  steps_ = std::min(steps_ + 1.0, kTimesRemembered);
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
  steps = std::min(steps + 1.0, kStepsRemembered);
  const double surprise = new_gain - gain;
  variance += (surprise * surprise - variance) / (steps + kStepsOfPrior);
  gain += surprise / steps;
  rows += (new_rows - rows) / steps;
}

void DraftStats::learn_run(double new_steps) {
  runs = std::min(runs + 1.0, kTimesRemembered);
  run += (new_steps - run) / (runs + 1.0);
}

void DraftStats::be_prior() {
  for (double* known : {&steps, &draft.steps, &runs}) *known = std::min(*known, kStepsOfPrior);
  reading.be_prior();
}

void DraftStats::fade_into(const DraftStats& all) {
  constexpr double kFading = 0.03;
  if (steps <= kStepsOfPrior) return;
  steps += kFading * (kStepsOfPrior - steps);
  gain += kFading * (all.gain - gain);
  variance += kFading * (all.variance - variance);
  rows += kFading * (all.rows - rows);
}

void DraftForecast::change(const DraftStats& one, double unread, double sign) {
  drafting += sign;
  tokens += sign * one.gain;
  rows += sign * one.rows;
  draft_ms += sign * (one.draft.ms + one.reading.ms_of(unread) / one.run);
  steps += sign * one.steps;
  variance += sign * one.variance_of_gain();
}

DraftForecast DraftForecast::at_best(double sum_variance) const {
  DraftForecast best = *this;
  best.tokens += std::sqrt(std::max(0.0, sum_variance));
  return best;
}

}  // namespace outrider
