// SPDX-License-Identifier: Apache-2.0
#include "sampling/token_history.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/counter_rng.h"
#include "sampling/token_mask.h"

namespace outrider {

void TokenHistory::reserve(size_t tokens) {
  entries_.reserve(tokens);
  tokens_.reserve(tokens);
  const size_t size = std::bit_ceil(std::max<size_t>(2 * tokens, 16));
  if (size <= places_.size()) return;
  places_.assign(size, -1);
  for (size_t i = 0; i < entries_.size(); ++i) places_[place(entries_[i].token)] = static_cast<int32_t>(i);
}

// The slot in places_ that holds the token's index or would hold it.
size_t TokenHistory::place(TokenId token) const {
  const size_t mask = places_.size() - 1;
  size_t at = mix64(static_cast<uint32_t>(token)) & mask;
  while (places_[at] >= 0 && entries_[static_cast<size_t>(places_[at])].token != token) at = (at + 1) & mask;
  return at;
}

TokenHistory::Counts& TokenHistory::at(TokenId token) {
  if (2 * (entries_.size() + 1) > places_.size()) reserve(2 * (entries_.size() + 1));
  int32_t& index = places_[place(token)];
  if (index < 0) {
    index = static_cast<int32_t>(entries_.size());
    entries_.push_back({token, {}});
  }
  return entries_[static_cast<size_t>(index)].counts;
}

TokenHistory::Counts TokenHistory::counts(TokenId token) const {
  const int32_t index = places_.empty() ? -1 : places_[place(token)];
  return index < 0 ? Counts{} : entries_[static_cast<size_t>(index)].counts;
}

void TokenHistory::add_prompt(std::span<const TokenId> prompt) {
  for (const TokenId token : prompt) ++at(token).prompt;
  tokens_.insert(tokens_.end(), prompt.begin(), prompt.end());
  prompt_ = tokens_.size();
}

void TokenHistory::restart(std::span<const TokenId> prompt, std::span<const TokenId> output) {
  entries_.clear();
  tokens_.clear();
  std::ranges::fill(places_, -1);
  add_prompt(prompt);
  for (const TokenId token : output) push(token);
}

void TokenHistory::push(TokenId output) {
  ++at(output).output;
  tokens_.push_back(output);
}

void TokenHistory::pop() {
  OUTRIDER_CHECK(tokens_.size() > prompt_);
  --at(tokens_.back()).output;
  tokens_.pop_back();
}

bool TokenHistory::is_breaker(TokenId token) const {
  return breakers_ != nullptr && contains(*breakers_, token);
}

}  // namespace outrider
