// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "outrider/token_tree.h"
#include "sampling/randomness.h"
#include "speculation/acceptance/node_choice.h"

namespace outrider {

// Block verification (2403.10444) of one tree. A block is a longest run of nodes with one proposal each. Its
// first i drafts are kept with probability
//   reach(i) = min(1, reach(i - 1) * p(draft i) / q(draft i)), reach(0) = 1,
// while the rejection rule keeps them with the product of min(1, p / q), which is never larger. If i drafts
// are kept and there are more, the next token is drawn from the normalised max(0, reach(i) * p - q) at that
// place. A node without proposals, or with several, is left to the rejection rule.
class BlockRule {
 public:
  struct Inputs {
    const TokenTree& tree;
    const TargetDistribution& target_distribution;
    int64_t position;  // absolute position of the first token to choose
    Randomness* randomness;
  };
  explicit BlockRule(const Inputs& inputs) : in_(inputs) {}

  // Chooses the token after `node`. Precondition: all nodes of the path to it were chosen before, in order.
  NodeChoice choose(int node);

 private:
  // Decides how much is kept of the block that `first` begins; p is the target's distribution there.
  void verify_block(const Proposal& first, const Distribution& p);
  void keep_with(double probability, int node, Distribution remaining);
  TokenId remaining_token();

  Inputs in_;
  int last_ = kNoChild;     // last node kept of the newest block
  bool is_whole_ = true;    // nothing of that block comes after last_
  Distribution remaining_;  // after last_ if the block is not whole; not normalised
};

}  // namespace outrider
