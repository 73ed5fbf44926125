// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace outrider {

// Tokens of the target for text that a draft model wrote in its own tokens (string-level exact match, arXiv
// 2502.05202). The last words of the text so far and the drafted text are tokenized together, and the tokens
// in the drafted text are proposed. Where one of them begins before the drafted text, in words that are
// committed, its part in the drafted text is made of the longest tokens that fit.
class StringMatch {
 public:
  // A token of the target and the end of its bytes in the drafted text.
  struct Piece {
    TokenId token = 0;
    size_t end = 0;
  };

  // target_vocab: ids that the target can choose. The tokenizer must outlive the object.
  StringMatch(const Tokenizer& target, int64_t target_vocab);

  // The bytes of the last words of the text.
  std::string last_words(std::span<const TokenId> tokens) const;

  // The tokens of `drafted` after these words. They end early where the target cannot spell the text.
  void split(std::string_view words, std::string_view drafted, std::vector<Piece>& pieces) const;

 private:
  bool add_longest(std::string_view drafted, size_t end, std::vector<Piece>& pieces) const;

  const Tokenizer* target_;
  int64_t vocab_;
  bool puts_space_;                                       // the tokenizer puts a space before every text
  std::unordered_map<std::string_view, TokenId> tokens_;  // by their bytes
  size_t longest_ = 0;                                    // bytes of the longest token
};

}  // namespace outrider
