// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outrider/drafter.h"
#include "sampling/randomness.h"

namespace outrider {

// Adds up to `count` children of `node`, the way the acceptance rule wants drafters with probabilities to
// propose: coupled: the first `count` of log q + g with the target's own noise g at `position`; rejection:
// drawn from q, without replacement or independently. Sets the node's distribution. Returns the number of
// children added: fewer when q has fewer tokens, none when q is not a distribution (NaN, not normalised).
// Precondition: `node` has no children.
struct ProposalArgs {
  TokenTree* tree = nullptr;
  int node = 0;
  const Distribution* distribution = nullptr;  // q, warped like the target's distribution
  int count = 1;
  int64_t position = 0;  // absolute position of the proposed tokens
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  ChildrenKind kind = ChildrenKind::kSampled;  // kSampled or kIndependent; rejection only
  Randomness* randomness = nullptr;
  uint64_t first_draw = 0;  // of those at this position; nodes that share draws are not independent
  std::span<const double> probabilities =
      {};  // guesses that child i is accepted, see TokenTree::add; or none
};
int propose(const ProposalArgs& args);

}  // namespace outrider
