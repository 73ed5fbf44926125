// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "outrider/drafter.h"
#include "outrider/engine.h"
#include "outrider/token_tree.h"
#include "sampling/randomness.h"
#include "speculation/acceptance/thinking_phase.h"

namespace outrider {

// Distribution of the target after the path from the root to `node`; asked for once per node that is reached,
// in path order. The reference is used up before the next call.
using TargetDistribution = std::function<const Distribution&(int node)>;

// The target's own token after `node`: its coupled pick, -1 where the distribution is empty.
using TargetToken = std::function<TokenId(int node)>;

struct VerifyArgs {
  const TokenTree* tree = nullptr;
  TargetDistribution target_distribution;
  int64_t position =
      0;  // absolute position of the first token to choose: committed tokens, the pending one included
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  Randomness* randomness = nullptr;
  TargetToken target_token = {};  // if set, the target's own token is asked of it, not of target_distribution
  // Lossy rules:
  const SpeculativeOptions* options = nullptr;
  TargetDistribution untruncated_distribution =
      {};                       // kRelaxed: as target_distribution, without truncation and never greedy
  ThinkingPhase thinking = {};  // kRelaxed: before the first token to choose
};

// Walks from the root as long as a child is accepted, then lets the target choose the last token. Never knows
// which drafter made the tree. Under a lossless rule the distribution of the tokens is the target's as long
// as kSampled children really are drawn from the distribution of their node and no drafter saw the randomness
// of acceptance; for `coupled`, the tokens are those of an empty tree whatever was drafted. An empty target
// distribution ends the walk with the lowest valid id (token 0).
void verify(const VerifyArgs& args, Verdict& verdict);

}  // namespace outrider
