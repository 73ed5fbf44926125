// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/token.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// A trie of the bytes of all tokens with its nodes in depth-first order. Immutable; all requests share one.
class TokenTrie {
 public:
  // A control token has the bytes of control_token_bytes(); tokens without bytes are left out.
  static std::shared_ptr<const TokenTrie> create(const Tokenizer& tokenizer);
  // For tests; token_bytes is indexed by id.
  static std::shared_ptr<const TokenTrie> create(const std::vector<std::string>& token_bytes);

  int vocab_size() const { return static_cast<int>(begin_.size()) - 1; }
  size_t mask_words() const { return (static_cast<size_t>(vocab_size()) + 63) / 64; }
  // Empty for ids that are not in the vocabulary.
  std::string_view token_bytes(TokenId token) const;
  int longest() const { return longest_; }  // bytes of a token, at least 1

  // Node 0 is the root and has no byte.
  int32_t node_count() const { return static_cast<int32_t>(nodes_.size()); }
  uint8_t byte(int32_t node) const { return nodes_[node].byte; }
  int depth(int32_t node) const { return nodes_[node].depth; }
  int32_t parent(int32_t node) const { return nodes_[node].parent; }
  int32_t subtree_end(int32_t node) const { return nodes_[node].end; }
  // Tokens whose bytes end at this node.
  std::span<const TokenId> tokens(int32_t node) const {
    const int32_t end = node + 1 < node_count() ? nodes_[node + 1].first_token : kept_;
    return {tokens_.data() + nodes_[node].first_token, tokens_.data() + end};
  }

 private:
  struct Node {
    int32_t end = 0;
    int32_t parent = 0;
    int32_t first_token = 0;
    uint16_t depth = 0;
    uint8_t byte = 0;
  };
  void build();

  std::string bytes_;            // bytes of all tokens in the order of their ids
  std::vector<size_t> begin_;    // by id: start in bytes_
  std::vector<TokenId> tokens_;  // sorted by their bytes
  std::vector<Node> nodes_;
  int32_t kept_ = 0;
  int longest_ = 1;
};

}  // namespace outrider
