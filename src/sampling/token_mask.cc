// SPDX-License-Identifier: Apache-2.0
#include "sampling/token_mask.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace outrider {

std::vector<uint64_t> no_tokens(int64_t count) {
  return std::vector<uint64_t>(static_cast<size_t>(count + 63) / 64);
}

std::vector<uint64_t> all_tokens(int64_t count) {
  std::vector<uint64_t> set = no_tokens(count);
  std::ranges::fill(set, ~uint64_t{0});
  if (count % 64 != 0) set.back() >>= 64 - count % 64;
  return set;
}

void add_token(std::span<uint64_t> set, TokenId token) {
  const auto word = static_cast<size_t>(token) / 64;
  set[word] |= uint64_t{1} << token % 64;
}

void remove_token(std::span<uint64_t> set, TokenId token) {
  const auto word = static_cast<size_t>(token) / 64;
  if (word < set.size()) set[word] &= ~(uint64_t{1} << token % 64);
}

bool contains(std::span<const uint64_t> set, TokenId token) {
  const auto word = static_cast<size_t>(token) / 64;
  return token >= 0 && word < set.size() && (set[word] >> (token % 64) & 1) != 0;
}

void mask_logits(std::span<const float> logits, std::span<const uint64_t> allowed,
                 std::vector<float>& masked) {
  masked.assign(logits.size(), -std::numeric_limits<float>::infinity());
  const size_t words = std::min(allowed.size(), (logits.size() + 63) / 64);
  for (size_t word = 0; word < words; ++word) {
    const uint64_t bits = allowed[word];
    if (bits == 0) continue;
    const size_t begin = word * 64;
    const size_t end = std::min(begin + 64, logits.size());
    for (size_t token = begin; token < end; ++token) {
      if ((bits >> (token - begin) & 1) != 0) masked[token] = logits[token];
    }
  }
}

ConstraintMove advanced(TokenConstraint& constraint, TokenConstraint::State state, TokenId token) {
  if (state == TokenConstraint::kDead) return {};
  const TokenConstraint::State next = constraint.advance(state, token);
  return {next != TokenConstraint::kDead || contains(constraint.allowed(state), token), next};
}

}  // namespace outrider
