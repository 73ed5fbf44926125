// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "outrider/token.h"

namespace outrider {

// The tokens of prompt and output, and how often each occurs in them, which the penalties depend on. Drafted
// tokens are pushed while a path is examined and popped afterwards; only committed tokens stay.
class TokenHistory {
 public:
  // Reserves memory: no push allocates while prompt and output have at most `tokens` tokens together.
  void reserve(size_t tokens);

  void add_prompt(std::span<const TokenId> prompt);
  // Forgets all tokens and starts again with these.
  void restart(std::span<const TokenId> prompt, std::span<const TokenId> output);
  void push(TokenId output);
  void pop();  // undoes the last push

  struct Counts {
    int32_t prompt = 0;
    int32_t output = 0;
  };
  struct Entry {
    TokenId token = 0;
    Counts counts;
  };
  // One entry per token that was ever added; both counts may be 0 after pop().
  std::span<const Entry> entries() const { return entries_; }
  Counts counts(TokenId token) const;
  std::span<const TokenId> tokens() const { return tokens_; }  // in their order

  // The tokens that end repetitions (DryPenalty), as a bit set; null: none.
  void set_breakers(std::shared_ptr<const std::vector<uint64_t>> breakers) {
    breakers_ = std::move(breakers);
  }
  bool is_breaker(TokenId token) const;

 private:
  Counts& at(TokenId token);
  size_t place(TokenId token) const;

  std::vector<Entry> entries_;   // in order of first use
  std::vector<int32_t> places_;  // open addressing, a power of two at most half full: index of an entry or -1
  std::vector<TokenId> tokens_;
  size_t prompt_ = 0;  // tokens of it
  std::shared_ptr<const std::vector<uint64_t>> breakers_;
};

}  // namespace outrider
