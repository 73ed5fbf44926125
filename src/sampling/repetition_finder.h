// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "outrider/sampling_params.h"
#include "sampling/token_history.h"

namespace outrider {

// Finds the tokens that would go on a repetition, for DryPenalty. Keeps its scratch memory between calls.
class RepetitionFinder {
 public:
  // The tokens that lose something of their logits, and how much, ids ascending. No
  // repetition reaches beyond a breaker of the history, and no breaker is penalised. Takes time in proportion
  // to the tokens that are searched. The result is valid until the next call.
  std::span<const std::pair<TokenId, double>> penalties(const DryPenalty& dry, const TokenHistory& history);

 private:
  void find_lengths(std::span<const TokenId> tokens);

  std::vector<int32_t> lengths_;  // by distance from the end: tokens before it that equal the last ones
  std::vector<std::pair<TokenId, int32_t>> found_;  // token, length of the repetition that it would go on
  std::vector<std::pair<TokenId, double>> penalties_;
};

}  // namespace outrider
