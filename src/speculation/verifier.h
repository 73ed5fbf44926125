// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "outrider/drafter.h"
#include "outrider/token_tree.h"
#include "sampling/randomness.h"

namespace outrider {

// Law of the target after the path from the root to `node`; asked for once per node that is reached, in path
// order. The reference is used up before the next call.
using TargetLaw = std::function<const Distribution&(int node)>;

// The same for what the coupled rule needs alone: the target's own token, -1 where the law is empty.
using TargetToken = std::function<TokenId(int node)>;

struct VerifyArgs {
  const TokenTree* tree = nullptr;
  TargetLaw target_law;
  int64_t position =
      0;  // absolute position of the first token to choose: committed tokens, the pending one included
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  Randomness* randomness = nullptr;
  TargetToken target_token = {};  // if set, the coupled rule asks this instead of target_law and randomness
};

// Walks from the root as long as a child is accepted, then lets the target choose the last token. Never knows
// which drafter made the tree. The law of the tokens is the target's as long as kSampled children really are
// drawn from the law of their node and no drafter saw the randomness of acceptance; for `coupled`, the tokens
// are those of an empty tree whatever was drafted. An empty target law ends the walk with the lowest valid id
// (token 0).
void verify(const VerifyArgs& args, Verdict& verdict);

}  // namespace outrider
