// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "drafters/suffix/suffix_nodes.h"
#include "outrider/token.h"

namespace outrider {

// A string that occurs in the texts of a suffix tree: the first `depth` tokens from the root towards `node`,
// all of them, or a part of the last edge. Valid until the tree changes.
struct SuffixPlace {
  int node = kNoNode;  // none: the string does not occur
  int depth = 0;
  explicit operator bool() const { return node != kNoNode; }
  bool operator==(const SuffixPlace&) const = default;
};

// How often every string of at most max_tree_depth tokens occurs in a set of texts: a trie of all suffixes
// cut to max_tree_depth, without the nodes where texts neither part nor end (SuffixDecoding, arXiv
// 2411.04975). Texts come and go, and lose their oldest tokens; one of them grows, token by token, in
// O(max_tree_depth) at worst.
class SuffixTree {
 public:
  explicit SuffixTree(int max_tree_depth) : max_tree_depth_(max_tree_depth) {}

  int max_tree_depth() const { return max_tree_depth_; }

  // An empty text, which takes the place of the one that grew.
  int add_text();
  void append(int text, TokenId token);  // to the one that grows
  void forget_oldest(int text);          // its first token; precondition: it has one
  void remove(int text);

  // Tokens of the text that were not forgotten.
  std::span<const TokenId> tokens(int text) const;

  SuffixPlace find(std::span<const TokenId> string) const;
  // places[m - 1] becomes the place of the last m tokens of the growing text, for all m < max_tree_depth for
  // which they occur elsewhere, too.
  void find_repeated_ends(int text, std::vector<SuffixPlace>& places) const;

  int count(SuffixPlace place) const { return nodes_[place.node].count; }
  TokenId last_token(SuffixPlace place) const;  // precondition: depth > 0
  // The string with the token appended that follows most often; none where nothing follows.
  SuffixPlace likeliest_after(SuffixPlace place) const;
  // The string with the next likeliest last token.
  SuffixPlace next_likeliest(SuffixPlace place) const;

  int64_t token_count() const { return token_count_; }
  int node_count() const { return nodes_.size(); }
  size_t bytes() const;

 private:
  // Where a suffix ends; the suffixes that end at one node are a list.
  struct Suffix {
    int node = kNoNode;
    SuffixId previous, next;
  };
  // Position p is at index p - base; positions below `oldest` are forgotten.
  struct Text {
    int base = 0;
    int oldest = 0;
    int implicit = 0;  // no longer suffix of the growing text occurs twice
    std::vector<TokenId> tokens;
    std::vector<Suffix> suffixes;
    int end() const { return base + static_cast<int>(tokens.size()); }
  };

  TokenId token(int text, int position) const {
    const Text& one = texts_[static_cast<size_t>(text)];
    return one.tokens[static_cast<size_t>(position - one.base)];
  }
  TokenId first_token(int node) const { return token(nodes_[node].text, nodes_[node].start); }
  Suffix& suffix(SuffixId id) {
    Text& text = texts_[static_cast<size_t>(id.text)];
    return text.suffixes[static_cast<size_t>(id.position - text.base)];
  }
  int depth_of(int node) const;
  int edge_length(int node) const { return depth_of(node) - nodes_[nodes_[node].parent].depth; }
  bool is_needless(int node) const;

  bool descend(SuffixId id, TokenId token);
  void end_at(int node, SuffixId id);
  void end_no_more(SuffixId id);
  void merge_into_only_child(int node);
  void remove_suffix(SuffixId id);
  void label_anew(int node);

  int max_tree_depth_;
  SuffixNodes nodes_;
  std::vector<Text> texts_;
  std::vector<int> free_texts_;
  int64_t token_count_ = 0;
};

}  // namespace outrider
