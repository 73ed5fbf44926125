// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "outrider/token.h"

namespace outrider {

struct NgramPoolOptions {
  int max_pattern = 2;    // tokens of the longest pattern
  int max_draft_len = 4;  // tokens of the longest continuation
  bool keep_all = true;
  bool use_oldest = true;
  int64_t max_patterns = 1 << 20;
};

// The continuations of every short pattern of tokens seen so far; the n-gram pool of TensorRT-LLM with the
// meaning that its documentation gives the options. `keep_all` keeps several continuations of a pattern (else
// one, where a longer one replaces a shorter), `use_oldest` proposes the first one seen (else the latest).
// Patterns used longest ago are forgotten when there are more than max_patterns.
class NgramPool {
 public:
  explicit NgramPool(const NgramPoolOptions& options) : options_(options) {}

  // Learns from `tokens`, of which the first `known` had been learned from before by the same sequence.
  void learn(std::span<const TokenId> tokens, size_t known);

  // The continuation of the longest pattern that ends `tokens`; empty when no pattern does.
  std::span<const TokenId> find(std::span<const TokenId> tokens);

  // Calls visit(continuation) for every continuation kept of every pattern that ends `tokens`, in the order
  // in which they are worth proposing: longest pattern first, then by age. Stops when visit returns false.
  template <typename Visit>
  void find_all(std::span<const TokenId> tokens, Visit&& visit);

  size_t pattern_count() const { return entries_.size(); }

 private:
  using Tokens = std::vector<TokenId>;
  struct TokensHash {
    size_t operator()(const Tokens& tokens) const;
  };
  struct Entry {
    std::vector<Tokens> continuations;  // oldest first
    std::list<const Tokens*>::iterator age;
  };

  void insert(std::span<const TokenId> pattern, std::span<const TokenId> continuation);
  void touch(Entry& entry);
  // Continuations of the last `size` tokens; null: nothing ever followed them.
  const std::vector<Tokens>* continuations(std::span<const TokenId> tokens, size_t size);
  size_t longest_pattern(std::span<const TokenId> tokens) const {
    return std::min(static_cast<size_t>(options_.max_pattern), tokens.size());
  }

  NgramPoolOptions options_;
  std::unordered_map<Tokens, Entry, TokensHash> entries_;
  std::list<const Tokens*> ages_;  // keys of entries_, least recently used first
  Tokens key_;                     // scratch
};

template <typename Visit>
void NgramPool::find_all(std::span<const TokenId> tokens, Visit&& visit) {
  for (size_t size = longest_pattern(tokens); size >= 1; --size) {
    const std::vector<Tokens>* kept = continuations(tokens, size);
    for (size_t i = 0; kept != nullptr && i < kept->size(); ++i) {
      if (!visit((*kept)[options_.use_oldest ? i : kept->size() - 1 - i])) return;
    }
  }
}

}  // namespace outrider
