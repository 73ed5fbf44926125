// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outrider/drafter.h"
#include "sampling/randomness.h"

namespace outrider {

// Adds up to `count` children of `node` as the acceptance rule needs them. Coupled rule: the `count` largest
// of log q + g, where g is the target's own Gumbel noise at `position`. Rejection rule: tokens drawn from q,
// without replacement or independently. Sets the distribution of the node. Returns the number of children
// added, which is smaller when q has fewer tokens and 0 when q is not a distribution (NaN, not normalised).
// Precondition: `node` has no children.
struct ProposalArgs {
  TokenTree* tree = nullptr;
  int node = 0;
  const Distribution* distribution = nullptr;  // q, after bias, penalties, temperature and truncation
  int count = 1;
  int64_t position = 0;  // absolute position of the proposed tokens
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  ChildrenKind kind = ChildrenKind::kSampled;  // rejection rule only: kSampled or kIndependent
  Randomness* randomness = nullptr;
  uint64_t first_draw = 0;  // number of the first draw at this position; every node needs its own draws
  // By child: the guess that it is accepted, see TokenTree::add(). Empty: all are 1.
  std::span<const double> probabilities = {};
};
int propose(const ProposalArgs& args);

}  // namespace outrider
