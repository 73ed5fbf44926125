// SPDX-License-Identifier: Apache-2.0
#include "grammar/token_trie.h"

#include <algorithm>
#include <limits>

#include "grammar/grammar.h"

namespace outrider {
namespace {

// Longer tokens are left out; real vocabularies do not have them, and depths fit 16 bits.
constexpr size_t kMaxTokenBytes = 4096;

}  // namespace

std::string control_token_bytes(std::string_view piece) { return "\xFF" + std::string(piece) + "\xFF"; }

std::shared_ptr<const TokenTrie> TokenTrie::create(const Tokenizer& tokenizer) {
  std::vector<std::string> bytes(tokenizer.vocab_size());
  for (TokenId token = 0; token < tokenizer.vocab_size(); ++token) {
    bytes[token] = tokenizer.is_control(token) ? control_token_bytes(tokenizer.token_piece(token))
                                               : std::string(tokenizer.token_bytes(token));
    // A byte that never occurs in UTF-8 would look like the mark of a control token.
    if (!tokenizer.is_control(token) && bytes[token].find('\xFF') != std::string::npos) bytes[token].clear();
  }
  return create(bytes);
}

std::shared_ptr<const TokenTrie> TokenTrie::create(const std::vector<std::string>& token_bytes) {
  auto trie = std::make_shared<TokenTrie>();
  trie->begin_.push_back(0);
  for (const std::string& bytes : token_bytes) {
    trie->bytes_ += bytes;
    trie->begin_.push_back(trie->bytes_.size());
  }
  trie->build();
  return trie;
}

std::string_view TokenTrie::token_bytes(TokenId token) const {
  if (token < 0 || token >= vocab_size()) return {};
  return std::string_view(bytes_).substr(begin_[token], begin_[token + 1] - begin_[token]);
}

void TokenTrie::build() {
  for (TokenId token = 0; token < vocab_size(); ++token) {
    const size_t size = token_bytes(token).size();
    if (size == 0 || size > kMaxTokenBytes) continue;
    tokens_.push_back(token);
    longest_ = std::max(longest_, static_cast<int>(size));
  }
  std::sort(tokens_.begin(), tokens_.end(), [&](TokenId a, TokenId b) {
    const int order = token_bytes(a).compare(token_bytes(b));
    return order != 0 ? order < 0 : a < b;
  });
  kept_ = static_cast<int32_t>(tokens_.size());
  nodes_.push_back({});
  std::vector<int32_t> path = {0};  // by depth: nodes of the previous token
  std::string_view previous;
  for (int32_t i = 0; i < kept_; ++i) {
    const std::string_view bytes = token_bytes(tokens_[i]);
    const auto differs = std::mismatch(previous.begin(), previous.end(), bytes.begin(), bytes.end());
    const auto common = static_cast<size_t>(differs.first - previous.begin());
    for (size_t depth = common + 1; depth < path.size(); ++depth) nodes_[path[depth]].end = node_count();
    path.resize(common + 1);
    for (size_t depth = common; depth < bytes.size(); ++depth) {
      nodes_.push_back({.parent = path.back(),
                        .first_token = i,
                        .depth = static_cast<uint16_t>(depth + 1),
                        .byte = static_cast<uint8_t>(bytes[depth])});
      path.push_back(node_count() - 1);
    }
    previous = bytes;
  }
  for (const int32_t node : path) nodes_[node].end = node_count();
}

}  // namespace outrider
