// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "outrider/result.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// Leads from the tokens of a target to tokens of a draft model with another tokenizer and back (token-level
// intersection, arXiv 2502.05202). The draft reads the target's text in its own tokens and proposes only
// tokens that the target has as well. Its distribution over such tokens is a distribution over tokens of the
// target, so that every acceptance rule stays exact.
class VocabularyBridge {
 public:
  // The text of one sequence in the draft's tokens.
  struct Text {
    std::vector<TokenId> tokens;
    size_t finished = 0;        // the first so many tokens, which later text does not change
    std::vector<TokenId> read;  // the target's tokens that they stand for
  };

  // target_vocab: ids that the target can choose.
  VocabularyBridge(const Tokenizer& target, std::shared_ptr<const Tokenizer> draft, int64_t target_vocab);

  // Error: the two have less than kMinShared tokens in common.
  static constexpr int kMinShared = 16;
  Status check_shared() const;

  // Brings `text` up to date with the target's tokens. The result depends only on the tokens and not on how
  // many came at a time, nor on tokens that were taken back.
  void read(std::span<const TokenId> tokens, Text& text) const;

  // The draft's id of every token of the target; -1: the draft does not have it.
  std::span<const TokenId> draft_ids() const { return draft_ids_; }

  // Logits [rows, width] of the draft as [rows, target_vocab], valid until the next call; -inf for tokens
  // that the draft does not have.
  std::span<const float> translate(std::span<const float> logits, size_t width);

  int shared() const { return shared_; }

  // The bytes of a token of the draft; empty for control tokens.
  std::string_view draft_bytes(TokenId token) const { return draft_->token_bytes(token); }

 private:
  void match(int64_t target_vocab);
  bool starts_word(TokenId token) const { return target_->token_bytes(token).starts_with(' '); }
  size_t end_of_segment(std::span<const TokenId> tokens, size_t begin) const;
  void encode(std::span<const TokenId> tokens, bool is_start, std::vector<TokenId>& into) const;
  void encode_text(std::string_view text, bool is_start, std::vector<TokenId>& into) const;

  const Tokenizer* target_;
  std::shared_ptr<const Tokenizer> draft_;
  std::vector<TokenId> draft_ids_;   // by the target's id, -1: none
  std::vector<TokenId> target_ids_;  // by the draft's id, -1: none
  int shared_ = 0;                   // tokens that both have
  // The tokenizer puts a space before every text.
  bool target_puts_space_ = false, draft_puts_space_ = false;
  std::vector<float> logits_;
};

}  // namespace outrider
