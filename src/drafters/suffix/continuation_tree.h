// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "corpus/context_search.h"
#include "drafters/suffix/suffix_tree.h"

namespace outrider {

// Counts the texts that follow the places of a range of a corpus: all of them or, where they are many,
// kSamples spread evenly. It grows as far as it is asked, and is read like a SuffixTree.
class ContinuationTree {
 public:
  static constexpr int64_t kSamples = 64;

  // Tokens below `vocab_size` only. The corpus outlives the tree.
  ContinuationTree(const Corpus& corpus, int64_t vocab_size) : corpus_(&corpus), vocab_size_(vocab_size) {}

  // Begins anew after these places, which share `match` tokens; places stay valid until the next call.
  SuffixPlace reset(PlaceRange range, int match);

  int count(SuffixPlace place) const { return node(place).end - node(place).begin; }
  TokenId last_token(SuffixPlace place) const { return node(place).token; }
  // As SuffixTree's; equally likely tokens stand in the order of their ids.
  SuffixPlace likeliest_after(SuffixPlace place);
  SuffixPlace next_likeliest(SuffixPlace place) const { return {node(place).next, place.depth}; }

 private:
  struct Node {
    TokenId token = 0;
    int begin = 0, end = 0;  // of samples_
    int next = kNoNode;
    int first_child = kNoNode;
    bool is_grown = false;
  };

  const Node& node(SuffixPlace place) const { return nodes_[static_cast<size_t>(place.node)]; }
  void grow(int index, int level);

  const Corpus* corpus_;
  int64_t vocab_size_;
  int match_ = 0;
  std::vector<int64_t> samples_;  // positions of the first tokens that follow
  std::vector<Node> nodes_;
  std::vector<std::pair<TokenId, int64_t>> next_tokens_;  // scratch of grow()
  std::vector<Node> children_;
};

}  // namespace outrider
