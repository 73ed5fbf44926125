// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "drafters/draft_target/string_match.h"
#include "drafters/draft_target/vocabulary_bridge.h"
#include "outrider/drafter.h"
#include "speculation/tree/top_nodes.h"

namespace outrider {

// Trees that a draft model grows in its own tokens, for requests that match text by strings. All its nodes
// are its likeliest tokens, whatever the request's sampling, so that a tree is a function of the text.
class TextTrees {
 public:
  // Both must outlive the object.
  TextTrees(const StringMatch& match, const VocabularyBridge& bridge) : match_(match), bridge_(bridge) {}

  // The number of requests, not all of which need such a tree.
  void start(size_t requests);
  // The request for the tree of requests[index]. `own` is its text in the draft's tokens, not empty.
  const DraftRequest& ask(size_t index, const DraftRequest& request, std::span<const TokenId> own);
  TokenTree& tree(size_t index) { return trees_[index]; }
  // Adds the paths of the grown trees to the requests' own, the likeliest first, within their limits.
  void hand_over(std::span<const DraftRequest> requests, std::span<TokenTree> trees);

 private:
  void hand_over_one(const TokenTree& own, const DraftRequest& request, TokenTree& tree);
  // The end of an own token in the text of a path, and the probability of the path up to it.
  struct Reached {
    size_t bytes = 0;
    double probability = 1.0;
  };
  void spell(const TokenTree& own, int leaf);
  void add_path(const DraftRequest& request, TokenTree& tree) const;

  const StringMatch& match_;
  const VocabularyBridge& bridge_;
  SamplingParams greedy_;
  std::vector<DraftRequest> requests_;
  std::vector<TokenTree> trees_;
  // Scratch of hand_over().
  TopNodes order_;
  std::vector<int> path_;
  std::string text_;
  std::vector<Reached> reached_;
  std::vector<StringMatch::Piece> pieces_;
};

}  // namespace outrider
