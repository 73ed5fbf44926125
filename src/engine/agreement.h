// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine_parts.h"

namespace outrider {

// How well the distributions of a drafter (q) agree with the target's (p) at temperature 1, over places of
// given texts.
struct Agreement {
  static constexpr size_t kRanks = 5;

  int64_t places = 0;
  bool has_distributions = false;  // the drafter says what it draws from, or the last of several that share a
                                   // tree does; else `coverage` is the share of places with the target's
                                   // likeliest token among those proposed
  double divergence = 0.0;         // mean KL(p || q) in nats
  double variation = 0.0;          // mean total variation; 1 - variation of drafts pass speculative sampling
  double early_variation = 0.0, late_variation = 0.0;  // of the first and second half of each text
  std::array<double, kRanks>
      coverage{};  // share of places with the target's likeliest token among q's first k
  // What the coupled rule accepts if drafts are proposed at so many times the temperature.
  static constexpr std::array<double, 7> kTemperatures = {0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5};
  std::array<double, kTemperatures.size()> coupled{};
  std::array<double, kRanks> sampled_coverage{};  // mean mass of p on q's first k
};

// A text and how many of its tokens are the prompt; places are those after it.
struct GivenText {
  std::vector<TokenId> tokens;
  int64_t prompt_length = 0;
};

// Errors: a text longer than the context; out of pages.
Result<Agreement> measure_agreement(EngineParts& parts, std::span<const GivenText> texts);

}  // namespace outrider
