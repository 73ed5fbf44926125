// SPDX-License-Identifier: Apache-2.0
// The acceptance rules: each chooses the token after one node. A lossless rule is lossless at every node: the
// distribution of NodeChoice::token is the target's, whatever the children are.
#pragma once

#include <cstdint>
#include <functional>

#include "outrider/engine.h"
#include "outrider/token_tree.h"
#include "sampling/randomness.h"

namespace outrider {

inline constexpr int kNoChild = -1;

// Returns the target's distribution after the path from the root to `node`. It is called in path order for
// the nodes that the walk reaches, and by the block rule also for nodes below them; it may be called again
// for the last node. The reference must be valid until the next call.
using TargetDistribution = std::function<const Distribution&(int node)>;

// The next child of `node` after its child `after`, in the order in which they are tested; kNoChild after the
// last. after == node returns the first child.
inline int next_child(const TokenTree& tree, int node, int after) {
  for (int child = after + 1; child < tree.size(); ++child) {
    if (tree.parent(child) == node) return child;
  }
  return kNoChild;
}

// A node that the walk has reached, with the inputs of the choice there.
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

// Coupled rule (2408.07978): the token is always `own`, the target's own token; a child that holds it is
// accepted.
NodeChoice choose_child(const TokenTree& tree, int node, TokenId own);

// Whether the children of `node` can have been drawn from distribution number `distribution` of the tree. If
// not, they count as chosen, which is lossless for any way to propose them.
bool can_have_drawn(const TokenTree& tree, int node, int distribution);

// Multi-step speculative sampling (2211.17192, 2305.09781): proposals are tested in order against p, which is
// the target's distribution at first; if all are rejected, the token is drawn from p. A proposal drawn from q
// is accepted with probability min(1, p/q); its rejection replaces p by the normalised max(0, p - q) and, if
// it was drawn without replacement, removes the token from q. A chosen proposal is accepted with probability
// p; its rejection removes the token from p. Proposals of several distributions may be mixed.
NodeChoice choose_by_rejection(const ReachedNode& reached, Randomness& randomness);

// Typical acceptance (Medusa, 2401.10774), lossy: accepts the likeliest child with a target probability above
// min(epsilon, delta * exp(-entropy)); without one, the token is `own`, the target's own token.
NodeChoice choose_typical(const ReachedNode& reached, const SpeculativeOptions& options, TokenId own);

// Relaxed acceptance (TensorRT-LLM), lossy: accepts the child that holds `own`, the target's own token. Else
// it accepts the likeliest child that is among the target's top k and within delta of its likeliest token.
// Else the token is `own`.
NodeChoice choose_relaxed(const ReachedNode& reached, const SpeculativeOptions& options, TokenId own);

}  // namespace outrider
