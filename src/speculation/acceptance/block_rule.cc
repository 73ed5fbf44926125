// SPDX-License-Identifier: Apache-2.0
#include "speculation/acceptance/block_rule.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sampling/distribution.h"

namespace outrider {
namespace {

// The only proposal at `node`; null if there is none or more than one.
const Proposal* only_proposal(const TokenTree& tree, int node) {
  const Proposal* only = nullptr;
  for (const Proposal& proposal : tree.proposals()) {
    if (proposal.parent != node) continue;
    if (only != nullptr) return nullptr;
    only = &proposal;
  }
  return only;
}

// The distribution that the proposal was drawn from; a point mass if it was chosen.
Distribution draft_distribution(const TokenTree& tree, const Proposal& proposal) {
  const int drawn = proposal.distribution;
  if (drawn >= 0 && can_have_drawn(tree, proposal.parent, drawn)) return tree.distribution_at(drawn);
  return {{tree.token(proposal.child)}, {1.0}};
}

// max(0, reach * p - q) over the tokens of p.
Distribution rest_of(const Distribution& p, const Distribution& q, double reach) {
  Distribution rest = p;
  size_t j = 0;
  for (size_t i = 0; i < p.tokens.size(); ++i) {
    while (j < q.tokens.size() && q.tokens[j] < p.tokens[i]) ++j;
    const bool is_drafted = j < q.tokens.size() && q.tokens[j] == p.tokens[i];
    rest.probabilities[i] =
        std::max(0.0, reach * p.probabilities[i] - (is_drafted ? q.probabilities[j] : 0.0));
  }
  return rest;
}

double mass_of(const Distribution& distribution) {
  return std::accumulate(distribution.probabilities.begin(), distribution.probabilities.end(), 0.0);
}

}  // namespace

NodeChoice BlockRule::choose(int node) {
  const TokenTree& tree = in_.tree;
  if (node > last_ || (node == last_ && is_whole_)) {
    const Distribution& p = in_.target_distribution(node);
    if (p.empty()) return {};
    const Proposal* only = only_proposal(tree, node);
    if (only == nullptr) {
      const int64_t position = in_.position + tree.depth(node);
      return choose_by_rejection({tree, node, p, position}, *in_.randomness);
    }
    verify_block(*only, p);
  }
  if (node == last_) return {remaining_token()};
  const int child = next_child(tree, node, node);
  return {tree.token(child), child};
}

void BlockRule::verify_block(const Proposal& first, const Distribution& p) {
  const TokenTree& tree = in_.tree;
  const Proposal* proposal = &first;
  const Distribution* target = &p;
  double reach = 1.0;
  last_ = first.parent;
  is_whole_ = false;
  while (true) {
    const Distribution q = draft_distribution(tree, *proposal);
    Distribution rest = rest_of(*target, q, reach);
    const double left = mass_of(rest);
    if (proposal == &first) {
      remaining_ = left > 0.0 ? std::move(rest) : p;  // p and q differ by rounding only
    } else if (left > 0.0) {
      keep_with(left / (left + 1.0 - reach), proposal->parent, std::move(rest));
    }
    const int node = proposal->child;
    reach = std::min(1.0, reach * probability(*target, tree.token(node)) / probability(q, tree.token(node)));
    if (!(reach > 0.0)) return;  // the target may not even know what follows a forbidden token
    proposal = only_proposal(tree, node);
    if (proposal != nullptr) target = &in_.target_distribution(node);
    if (proposal != nullptr && !target->empty()) continue;
    keep_with(reach, node, {});
    is_whole_ = last_ == node;
    return;
  }
}

// Keeps the block up to `node`, whatever was decided about its earlier nodes. Tokens that are not kept in
// this step had a part in the decision, so that the draws of a later step at their positions need other
// numbers: the numbers of another depth.
void BlockRule::keep_with(double probability, int node, Distribution remaining) {
  constexpr uint64_t kFirstDraw = uint64_t{1} << 32;  // the rejection rule uses smaller numbers
  const int depth = in_.tree.depth(node);
  const uint64_t draw = kFirstDraw + static_cast<uint64_t>(depth);
  if (!in_.randomness->bernoulli(probability, in_.position + depth - 1, draw)) return;
  last_ = node;
  remaining_ = std::move(remaining);
}

TokenId BlockRule::remaining_token() {
  const int64_t position = in_.position + in_.tree.depth(last_);
  return remaining_
      .tokens[in_.randomness->categorical(remaining_.probabilities, position, RandomPurpose::kResidual, 0)];
}

}  // namespace outrider
