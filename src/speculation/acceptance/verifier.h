// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "outrider/drafter.h"
#include "outrider/engine.h"
#include "outrider/token_tree.h"
#include "sampling/randomness.h"
#include "speculation/acceptance/node_choice.h"
#include "speculation/acceptance/thinking_phase.h"

namespace outrider {

// Returns the target's own token after `node`, which is its coupled pick; -1 where the distribution is empty.
using TargetToken = std::function<TokenId(int node)>;

struct VerifyArgs {
  const TokenTree* tree = nullptr;
  TargetDistribution target_distribution;
  int64_t position = 0;  // absolute position of the first token to choose: the number of committed tokens
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  Randomness* randomness = nullptr;
  TargetToken target_token = {};                // if set, replaces the coupled pick from target_distribution
  const SpeculativeOptions* options = nullptr;  // thresholds of the lossy rules
  TargetDistribution untruncated_distribution = {};  // kRelaxed: without top-k, top-p and min-p, never greedy
  ThinkingPhase thinking = {};                       // kRelaxed: phase before the first token to choose
};

// Walks down the tree from the root as long as a child is accepted; the target chooses the last token. The
// walk does not depend on which drafter made the tree. Under a lossless rule the tokens have the target's
// distribution, provided that kSampled and kIndependent children are drawn from the distribution of their
// node and no drafter saw the randomness of acceptance. Under the coupled rule they are even the tokens that
// an empty tree gives. An empty target distribution ends the walk with token 0.
void verify(const VerifyArgs& args, Verdict& verdict);

}  // namespace outrider
