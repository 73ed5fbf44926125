// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "outrider/sampling_params.h"
#include "outrider/token.h"

namespace outrider {

// How children were found; decides which acceptance test is lossless for them.
enum class ChildrenKind : uint8_t {
  kChosen,       // without looking at randomness: n-gram hits, top-k, user drafters
  kSampled,      // drawn one after the other from a distribution, without replacement
  kIndependent,  // drawn from a distribution, each without regard to the others; may repeat a token
};

// One try at a node: `child` of `parent` was chosen (distribution == -1), or drawn from
// TokenTree::distribution_at(distribution). Two tries of the same token share the child.
struct Proposal {
  int parent = 0;
  int child = 0;
  int distribution = -1;
};

// Drafted continuations of one sequence. Node 0 is the pending token (chosen, not yet in the KV cache); every
// other node continues its parent. Nodes are in topological order: parent(i) < i. Siblings hold different
// tokens and are tried in the order they were added.
class TokenTree {
 public:
  explicit TokenTree(TokenId pending = 0) { reset(pending); }

  void reset(TokenId pending);
  // Makes room: trees of so many nodes, the root included, do not allocate, but for distributions.
  void reserve(int nodes);

  // Adds a child and returns its index; a child of `parent` with that token that is there already is returned
  // instead. `probability`: the drafter's guess, in (0, 1], that the child is accepted if its parent is;
  // steers which nodes are kept, never what is accepted. Precondition: 0 <= parent < size().
  int add(int parent, TokenId token, double probability = 1.0);

  // States that children added to `node` from now on are drawn from `distribution`, in the order they are
  // added.
  void set_distribution(int node, const Distribution& distribution,
                        ChildrenKind kind = ChildrenKind::kSampled);

  // Adds every path of `other`, a tree of drafter number `source` (0..31) with the same root. Its tries come
  // after those that are here, so that each keeps the distribution it was drawn from.
  void merge(const TokenTree& other, int source);

  // Drops the nodes i with kept[i] == 0 and everything below them; the root stays. All that stay count as
  // chosen: which nodes were worth keeping may tell something about any draw. Call it whatever was drawn or
  // not at all: a tree left alone because of its draws is no longer made of fair ones.
  void keep(std::span<const uint8_t> kept);

  int size() const { return static_cast<int>(tokens_.size()); }
  int drafted() const { return size() - 1; }
  TokenId token(int node) const { return tokens_[static_cast<size_t>(node)]; }
  int parent(int node) const { return parents_[static_cast<size_t>(node)]; }  // of the root: -1
  int depth(int node) const { return depths_[static_cast<size_t>(node)]; }    // of the root: 0
  void set_probability(int node, double probability) {
    probabilities_[static_cast<size_t>(node)] = probability;
  }
  double probability(int node) const { return probabilities_[static_cast<size_t>(node)]; }
  uint32_t sources(int node) const { return sources_[static_cast<size_t>(node)]; }  // bit i: drafter i
  std::span<const TokenId> tokens() const { return tokens_; }
  std::span<const int> parents() const { return parents_; }

  // All tries, those of one node in the order in which they are made.
  std::span<const Proposal> proposals() const { return proposals_; }
  const Distribution& distribution_at(int index) const {
    return distributions_[static_cast<size_t>(index)].distribution;
  }
  ChildrenKind kind_at(int index) const { return distributions_[static_cast<size_t>(index)].kind; }

  // Of the children added to `node` last: how they were found, and the distribution they were drawn from
  // (empty for kChosen).
  ChildrenKind children_kind(int node) const;
  const Distribution& distribution(int node) const;

 private:
  struct DrawnFrom {
    Distribution distribution;
    ChildrenKind kind = ChildrenKind::kSampled;
  };

  std::vector<TokenId> tokens_;
  std::vector<int> parents_;
  std::vector<int> depths_;
  std::vector<double> probabilities_;
  std::vector<uint32_t> sources_;
  std::vector<int> distribution_index_;  // per node, of the children to come; -1: chosen
  std::vector<Proposal> proposals_;
  std::vector<DrawnFrom>
      distributions_;  // the first distribution_count_ are in use; reset() keeps the memory of all
  size_t distribution_count_ = 0;
  // Scratch of merge() and keep(): new indices of nodes and distributions, -1: none.
  std::vector<int> place_, distribution_place_;
};

// What became of a drafted node.
enum class NodeFate : uint8_t {
  kAccepted,    // committed
  kRejected,    // its parent was reached, the target chose otherwise
  kUnreached,   // its parent was not accepted, or an earlier sibling was
  kPastStop,    // on the accepted path, but the sequence ended before it
  kOverBudget,  // cut before the pass; in traces alone
};

enum class TokenOrigin : uint8_t {
  kPlain,      // nothing was drafted for this place
  kAccepted,   // drafted and accepted
  kRecovered,  // drafts were tried here and all rejected
  kBonus,      // chosen by the target after the last accepted draft, where the tree ended
};

// Outcome of verifying one tree. tokens.size() == path.size() >= 1: the drafted tokens of path[1..] and then
// the one token that the target adds.
struct Verdict {
  std::vector<int> path;  // accepted nodes, from the root down
  std::vector<TokenId> tokens;
  std::vector<TokenOrigin> origins;  // of `tokens`
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
