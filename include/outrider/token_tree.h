// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "outrider/sampling_params.h"
#include "outrider/token.h"

namespace outrider {

// How the children of a node were found; decides which acceptance test is lossless for them.
enum class ChildrenKind : uint8_t {
  kChosen,   // without looking at randomness: n-gram hits, top-k, user drafters
  kSampled,  // drawn one after the other from `law`, without replacement
};

// Drafted continuations of one sequence. Node 0 is the pending token (chosen, not yet in the KV cache); every
// other node continues its parent. Nodes are in topological order: parent(i) < i. Siblings hold different
// tokens and are tried in the order they were added.
class TokenTree {
 public:
  explicit TokenTree(TokenId pending = 0) { reset(pending); }

  void reset(TokenId pending);

  // Adds a child and returns its index; a child of `parent` with that token that is there already is returned
  // instead. Precondition: 0 <= parent < size().
  int add(int parent, TokenId token);

  // States that the children of `node` are, or will be, drawn from `law`, in the order they are added.
  void set_law(int node, const Distribution& law);

  int size() const { return static_cast<int>(tokens_.size()); }
  int drafted() const { return size() - 1; }
  TokenId token(int node) const { return tokens_[static_cast<size_t>(node)]; }
  int parent(int node) const { return parents_[static_cast<size_t>(node)]; }  // of the root: -1
  int depth(int node) const { return depths_[static_cast<size_t>(node)]; }    // of the root: 0
  std::span<const TokenId> tokens() const { return tokens_; }
  std::span<const int> parents() const { return parents_; }

  ChildrenKind children_kind(int node) const;
  // The law the children of `node` were drawn from; empty for kChosen.
  const Distribution& law(int node) const;

 private:
  std::vector<TokenId> tokens_;
  std::vector<int> parents_;
  std::vector<int> depths_;
  std::vector<int> law_index_;      // per node; -1: chosen
  std::vector<Distribution> laws_;  // the first law_count_ are in use; reset() keeps the memory of all
  size_t law_count_ = 0;
};

// What became of a drafted node.
enum class NodeFate : uint8_t {
  kAccepted,   // committed
  kRejected,   // its parent was reached, the target chose otherwise
  kUnreached,  // its parent was not accepted, or an earlier sibling was
  kPastStop,   // on the accepted path, but the sequence ended before it
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

  void clear() {
    path.clear();
    tokens.clear();
    origins.clear();
    fates.clear();
  }
};

}  // namespace outrider
