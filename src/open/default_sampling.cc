// SPDX-License-Identifier: Apache-2.0
#include "open/default_sampling.h"

#include <string_view>

namespace outrider {
namespace {

bool is_empty(const SamplingChoices& choices) {
  return !choices.temperature && !choices.top_p && !choices.min_p && !choices.repetition_penalty &&
         !choices.top_k;
}

}  // namespace

SamplingChoices given_choices(const Settings& settings) {
  const SamplingParams& asked = settings.request.sampling;
  const auto given = [&](std::string_view name) { return settings.origins.contains(name); };
  SamplingChoices choices;
  if (given("temperature")) choices.temperature = asked.temperature;
  if (given("top-p")) choices.top_p = asked.top_p;
  if (given("top-k")) choices.top_k = asked.top_k;
  if (given("min-p")) choices.min_p = asked.min_p;
  if (given("repetition-penalty")) choices.repetition_penalty = asked.repetition_penalty;
  return choices;
}

SamplingParams default_sampling(SamplingParams otherwise, const SamplingChoices& given,
                                const SamplingChoices& recommended) {
  constexpr SamplingChoices kUntouched = {
      .temperature = 1.0, .top_p = 1.0, .min_p = 0.0, .repetition_penalty = 1.0, .top_k = 0};
  if (!is_empty(recommended)) {
    kUntouched.apply_to(otherwise);
    recommended.apply_to(otherwise);
  }
  given.apply_to(otherwise);
  return otherwise;
}

}  // namespace outrider
