// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine_parts.h"

namespace outrider {

// How well the distributions of a drafter (q) agree with the target's (p) at temperature 1, over the places
// of given texts. A place is a token after the prompt.
struct Agreement {
  static constexpr size_t kRanks = 5;

  int64_t places = 0;
  // The drafter, or the last of several that share a tree, gives the distribution that it draws from.
  // Otherwise `coverage` is the share of places with the target's likeliest token among the proposed ones.
  bool has_distributions = false;
  double divergence = 0.0;  // mean KL(p || q) in nats
  double variation = 0.0;   // mean total variation; speculative sampling accepts 1 - variation of the drafts
  double early_variation = 0.0, late_variation = 0.0;  // means over the first and second half of each text
  // Share of places with the target's likeliest token among q's first k, by k - 1.
  std::array<double, kRanks> coverage{};
  // coverage[0] of a drafter that reads the target's states, when it is given states of other places.
  std::optional<double> coverage_with_other_states = {};
  // Share of drafts that the coupled rule accepts if they are proposed at these multiples of the temperature.
  static constexpr std::array<double, 7> kTemperatures = {0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5};
  std::array<double, kTemperatures.size()> coupled{};
  std::array<double, kRanks> sampled_coverage{};  // mean mass of p on q's first k, by k - 1
};

// A text, of which the first prompt_length tokens are the prompt.
struct GivenText {
  std::vector<TokenId> tokens;
  int64_t prompt_length = 0;
};

// Errors: a text longer than the context; out of pages.
Result<Agreement> measure_agreement(EngineParts& parts, std::span<const GivenText> texts);
// Without coverage_with_other_states, in half the time.
Result<Agreement> measure_own_agreement(EngineParts& parts, std::span<const GivenText> texts);

}  // namespace outrider
