// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "outrider/sampling_params.h"
#include "outrider/token.h"

namespace outrider {

// How the children of a node were proposed. The acceptance test that is lossless for them depends on it.
enum class ChildrenKind : uint8_t {
  kChosen,       // picked without randomness: n-gram hits, top-k, user drafters
  kSampled,      // drawn from a distribution one after the other, without replacement
  kIndependent,  // drawn from a distribution independently of each other; a token may repeat
};

// One proposal of a child: `child` of `parent` was chosen (distribution == -1) or drawn from
// TokenTree::distribution_at(distribution). Two proposals of one token at one parent share the child.
struct Proposal {
  int parent = 0;         // node index
  int child = 0;          // node index
  int distribution = -1;  // index for TokenTree::distribution_at()
};

// Drafted continuations of one sequence. Node 0 is the pending token (chosen, not yet in the KV cache); every
// other node continues its parent. Nodes are in topological order: parent(i) < i. Siblings hold different
// tokens; acceptance tests them in the order in which they were added.
class TokenTree {
 public:
  explicit TokenTree(TokenId pending = 0) { reset(pending); }

  void reset(TokenId pending);
  // Reserves memory: a tree of at most `nodes` nodes, the root included, allocates for distributions and
  // repeated proposals only.
  void reserve(int nodes);

  // Adds a child and returns its index; if `parent` already has a child with that token, returns that child.
  // `probability`, in (0, 1], is the drafter's guess that the child is accepted given that its parent is. It
  // steers which nodes are kept and never what is accepted. Precondition: 0 <= parent < size().
  int add(int parent, TokenId token, double probability = 1.0);

  // Adds one more proposal of a child, as add() does for a drawn token that repeats.
  void repeat(int child);

  // States that the children added to `node` after this call are drawn from `distribution`, in the order in
  // which they are added.
  void set_distribution(int node, const Distribution& distribution,
                        ChildrenKind kind = ChildrenKind::kSampled);

  // Adds every path of `other`, a tree of drafter number `source` (0..31) with the same root. Its proposals
  // come after the existing ones, and each keeps the distribution it was drawn from.
  void merge(const TokenTree& other, int source);

  // Drops the nodes i with kept[i] == 0 and their descendants; the root stays. All remaining nodes count as
  // chosen, because the selection may depend on what was drawn. Whether keep() is called must not depend on
  // the draws: keeping a whole tree because of its draws would bias them.
  void keep(std::span<const uint8_t> kept);

  int size() const { return static_cast<int>(tokens_.size()); }
  int drafted() const { return size() - 1; }
  TokenId token(int node) const { return tokens_[static_cast<size_t>(node)]; }
  int parent(int node) const { return parents_[static_cast<size_t>(node)]; }  // -1 for the root
  int depth(int node) const { return depths_[static_cast<size_t>(node)]; }    // 0 for the root
  void set_probability(int node, double probability) {
    probabilities_[static_cast<size_t>(node)] = probability;
  }
  double probability(int node) const { return probabilities_[static_cast<size_t>(node)]; }
  uint32_t sources(int node) const { return sources_[static_cast<size_t>(node)]; }  // bit i: drafter i
  std::span<const TokenId> tokens() const { return tokens_; }
  std::span<const int> parents() const { return parents_; }

  // All proposals; proposals at one parent are in the order in which acceptance tests them.
  std::span<const Proposal> proposals() const { return proposals_; }
  const Distribution& distribution_at(int index) const {
    return distributions_[static_cast<size_t>(index)].distribution;
  }
  ChildrenKind kind_at(int index) const { return distributions_[static_cast<size_t>(index)].kind; }

  // How the children added to `node` last were proposed, and the distribution they were drawn from (empty for
  // kChosen).
  ChildrenKind children_kind(int node) const;
  const Distribution& distribution(int node) const;

 private:
  struct ProposalDistribution {
    Distribution distribution;
    ChildrenKind kind = ChildrenKind::kSampled;
  };

  std::vector<TokenId> tokens_;
  std::vector<int> parents_;
  std::vector<int> depths_;
  std::vector<double> probabilities_;
  std::vector<uint32_t> sources_;
  std::vector<int> distribution_index_;  // by node: distribution of its next children; -1: they are chosen
  std::vector<Proposal> proposals_;
  // The first distribution_count_ entries are in use; reset() keeps the memory of all entries.
  std::vector<ProposalDistribution> distributions_;
  size_t distribution_count_ = 0;
  // Scratch of merge() and keep(): new indices of nodes and distributions; -1: dropped or not yet copied.
  std::vector<int> new_index_, new_distribution_;
};

// The outcome of one drafted node.
enum class NodeFate : uint8_t {
  kAccepted,    // committed
  kRejected,    // its parent was accepted, but the target chose another token
  kUnreached,   // its parent was not accepted, or an earlier sibling was
  kPastStop,    // on the accepted path, but the sequence ended before it
  kOverBudget,  // cut before the target pass; occurs in traces only
};

// How a committed token came about.
enum class TokenOrigin : uint8_t {
  kPlain,      // nothing was drafted at this position
  kAccepted,   // drafted and accepted
  kRecovered,  // the target's token at a position where all drafts were rejected
  kBonus,      // the target's token after the last accepted draft, where the tree ended
};

// Outcome of verifying one tree. tokens.size() == path.size() >= 1: the drafted tokens of path[1..] and then
// the one token that the target adds.
struct Verdict {
  std::vector<int> path;  // accepted nodes, from the root down
  std::vector<TokenId> tokens;
  std::vector<TokenOrigin> origins;  // by index in `tokens`
  std::vector<NodeFate> fates;       // by node; the root counts as accepted
  std::vector<TokenId> choices;      // by node: the target's likeliest next token; empty unless the drafter's
                                     // traits ask for it

  void clear() {
    path.clear();
    tokens.clear();
    origins.clear();
    fates.clear();
    choices.clear();
  }
};

}  // namespace outrider
