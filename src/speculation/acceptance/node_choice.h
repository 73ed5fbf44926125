// SPDX-License-Identifier: Apache-2.0
// The acceptance rules: how the token after one node is chosen. The lossless ones are so on their own: the
// distribution of NodeChoice::token is the target's, whatever children there are.
#pragma once

#include <cstdint>

#include "outrider/engine.h"
#include "outrider/token_tree.h"
#include "sampling/randomness.h"

namespace outrider {

inline constexpr int kNoChild = -1;

// The first child of `node` behind its child `after`, in the order they are tried; kNoChild behind the last.
// after == node asks for the first.
inline int next_child(const TokenTree& tree, int node, int after) {
  for (int child = after + 1; child < tree.size(); ++child) {
    if (tree.parent(child) == node) return child;
  }
  return kNoChild;
}

// A node that the walk has reached.
struct ReachedNode {
  const TokenTree& tree;
  int node;
  const Distribution& target_distribution;  // after `node`; not empty
  int64_t position;                         // absolute position of the token to choose
};

struct NodeChoice {
  TokenId token = 0;
  int accepted = kNoChild;  // the child that holds `token`
};

// The coupled rule: the target's own token stands; the child that equals it is accepted.
NodeChoice choose_child(const TokenTree& tree, int node, TokenId own);

// Speculative sampling: tries are made in order against the target's distribution p, each rejection replaces
// p by the distribution of what is still missing, and p chooses when none is left. Children drawn from a
// distribution q pass with min(1, p/q), leaving max(0, p - q) and, if drawn without replacement, q without
// the token (2211.17192, 2305.09781); other children pass with p, leaving p without the token. Tries of
// several distributions may be mixed.
NodeChoice choose_by_rejection(const ReachedNode& reached, Randomness& randomness);

// Lossy: of the children likelier than min(epsilon, delta * exp(-entropy)) the likeliest; without one, the
// target's own token.
NodeChoice choose_typical(const ReachedNode& reached, const SpeculativeOptions& options, TokenId own);

// Lossy: the target's own token if it was drafted, else the likeliest child that is among the top k and
// within delta of the likeliest token, else the target's own token.
NodeChoice choose_relaxed(const ReachedNode& reached, const SpeculativeOptions& options, TokenId own);

}  // namespace outrider
