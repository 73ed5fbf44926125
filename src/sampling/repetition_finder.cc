// SPDX-License-Identifier: Apache-2.0
#include "sampling/repetition_finder.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace outrider {
namespace {

// base^exponent by multiplication, which is the same on every machine.
double power(double base, int32_t exponent) {
  double result = 1.0;
  for (; exponent > 0 && std::isfinite(result); exponent /= 2, base *= base) {
    if (exponent % 2 == 1) result *= base;
  }
  return std::min(result, static_cast<double>(std::numeric_limits<float>::max()));
}

}  // namespace

// The Z array of the tokens in reverse (Gusfield 1997).
void RepetitionFinder::find_lengths(std::span<const TokenId> tokens) {
  const auto count = static_cast<int32_t>(tokens.size());
  const auto at = [&](int32_t distance) { return tokens[static_cast<size_t>(count - 1 - distance)]; };
  lengths_.assign(tokens.size(), 0);
  int32_t left = 0, right = 0;  // the match that reaches furthest: [left, right)
  for (int32_t i = 1; i < count; ++i) {
    int32_t length = i < right ? std::min(right - i, lengths_[static_cast<size_t>(i - left)]) : 0;
    while (i + length < count && at(length) == at(i + length)) ++length;
    lengths_[static_cast<size_t>(i)] = length;
    if (i + length > right) left = i, right = i + length;
  }
}

std::span<const std::pair<TokenId, double>> RepetitionFinder::penalties(const DryPenalty& dry,
                                                                        const TokenHistory& history) {
  penalties_.clear();
  if (dry.multiplier == 0.0 || dry.last_n == 0) return penalties_;
  std::span<const TokenId> tokens = history.tokens();
  if (dry.last_n > 0 && std::cmp_greater(tokens.size(), dry.last_n))
    tokens = tokens.last(static_cast<size_t>(dry.last_n));
  const auto breaker =
      std::find_if(tokens.rbegin(), tokens.rend(), [&](TokenId token) { return history.is_breaker(token); });
  const auto longest = static_cast<int32_t>(breaker - tokens.rbegin());
  if (longest < dry.allowed_length) return penalties_;
  find_lengths(tokens);
  found_.clear();
  for (size_t i = 1; i < tokens.size(); ++i) {
    const int32_t length = std::min(lengths_[i], longest);
    const TokenId next = tokens[tokens.size() - i];
    if (length >= dry.allowed_length && length > 0 && !history.is_breaker(next))
      found_.emplace_back(next, length);
  }
  std::ranges::sort(found_);
  for (const auto& [token, length] : found_) {
    if (penalties_.empty() || penalties_.back().first != token) penalties_.emplace_back(token, 0.0);
    penalties_.back().second = dry.multiplier * power(dry.base, length - dry.allowed_length);
  }
  return penalties_;
}

}  // namespace outrider
