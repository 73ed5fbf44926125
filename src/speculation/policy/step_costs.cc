// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/step_costs.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace outrider {
namespace {

constexpr double kFading = 0.05;  // weight of the newest step in a mean

double nearest(const ByBatchSize<double>& known, double size) {
  const double* found = known.nearest(size, [](double ms) { return ms > 0.0; });
  return found == nullptr ? 0.0 : *found;
}

}  // namespace

StepCosts::StepCosts(PassCosts passes) : passes_(std::move(passes)) {}

void StepCosts::begin(const BatchShape& load, double may_draft) {
  load_ = load;
  drafting_ = may_draft;
  step_batching_ = batching_;
  const double plain = nearest(plain_rest_, load.sequences);
  const double drafting = nearest(drafting_rest_, load.sequences);
  plain_rest_ms_ = load.sequences * (plain > 0.0 ? plain : drafting);
  drafting_rest_ms_ = load.sequences * (drafting > 0.0 ? drafting : plain);
}

double StepCosts::share_of_batch(double drafting) const {
  return std::pow(std::max(1.0, drafting), -step_batching_);
}

double StepCosts::rate(const DraftForecast& forecast) const {
  const double rows_ms = pass_ms(std::max(0.0, forecast.rows)) - pass_ms(0.0);
  const double rest = drafting_rest_ms() * forecast.drafting / drafting_;
  const double draft_ms = forecast.draft_ms * pace() * share_of_batch(forecast.drafting);
  return forecast.tokens / (plain_ms() + rows_ms + rest + draft_ms);
}

void StepCosts::learn_pass(const PassCosts::Pass& pass) {
  if (known()) passes_.learn(pass);
}

void StepCosts::learn_rest(bool has_drafted, double ms) {
  constexpr double kMaxSurprise = 2.0;  // a stalled step counts as at most twice the usual time
  const double each = ms / load_.sequences;
  double& known = (has_drafted ? drafting_rest_ : plain_rest_)[load_.sequences];
  if (known == 0.0) known = each;
  known += kFading * (std::min(each, kMaxSurprise * known) - known);
}

void StepCosts::learn_batching(double draft_ms, double alone_ms) {
  if (drafting_ <= 1.0 || alone_ms <= 0.0) return;
  const double seen = std::log(alone_ms / draft_ms) / std::log(drafting_);
  batching_ += kFading / drafting_ * (std::clamp(seen, 0.0, 1.0) - batching_);
}

}  // namespace outrider
