// SPDX-License-Identifier: Apache-2.0
#include "engine/token_limits.h"

#include <algorithm>
#include <utility>

#include "sampling/token_mask.h"

namespace outrider {
TokenLimits::TokenLimits(const Rules& rules, std::shared_ptr<TokenConstraint> inner)
    : inner_(std::move(inner)),
      always_(all_tokens(rules.vocab_size)),
      min_tokens_(rules.min_tokens),
      ends_(rules.ends) {
  if (!rules.allowed.empty()) {
    std::ranges::fill(always_, 0);
    for (const TokenId token : rules.allowed) add_token(always_, token);
  }
  for (const std::vector<TokenId>& sequence : rules.forbidden) add_forbidden(sequence);
  link_beginnings();
}

void TokenLimits::add_forbidden(std::span<const TokenId> sequence) {
  if (sequence.size() == 1) return remove_token(always_, sequence[0]);
  int beginning = 0;
  for (const TokenId token : sequence.first(sequence.size() - 1)) {
    const auto [next, is_new] = beginnings_[static_cast<size_t>(beginning)].next.try_emplace(
        token, static_cast<int>(beginnings_.size()));
    beginning = next->second;
    if (is_new) beginnings_.emplace_back();
  }
  beginnings_[static_cast<size_t>(beginning)].forbidden.push_back(sequence.back());
}

// Sets the links level by level, as Aho and Corasick's automaton does.
void TokenLimits::link_beginnings() {
  std::vector<int> order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    const int parent = order[i];
    for (const auto& [token, child] : beginnings_[static_cast<size_t>(parent)].next) {
      Beginning& one = beginnings_[static_cast<size_t>(child)];
      if (parent != 0) one.link = beginning_after(beginnings_[static_cast<size_t>(parent)].link, token);
      const std::vector<TokenId>& shorter = beginnings_[static_cast<size_t>(one.link)].forbidden;
      one.forbidden.insert(one.forbidden.end(), shorter.begin(), shorter.end());
      order.push_back(child);
    }
  }
}

int TokenLimits::beginning_after(int beginning, TokenId token) const {
  while (true) {
    const Beginning& one = beginnings_[static_cast<size_t>(beginning)];
    const auto next = one.next.find(token);
    if (next != one.next.end()) return next->second;
    if (beginning == 0) return 0;
    beginning = one.link;
  }
}

TokenConstraint::State TokenLimits::state_of(const Key& key) {
  const auto [found, is_new] = states_.try_emplace(key, static_cast<State>(keys_.size()));
  if (is_new) keys_.push_back(key);
  return found->second;
}

TokenConstraint::State TokenLimits::start() { return state_of({inner_ ? inner_->start() : 0, 0, 0}); }

bool TokenLimits::may_come(const Key& key, TokenId token) const {
  const auto& [inner, count, beginning] = key;
  const std::vector<TokenId>& forbidden = beginnings_[static_cast<size_t>(beginning)].forbidden;
  return contains(always_, token) && std::ranges::find(forbidden, token) == forbidden.end() &&
         (count >= min_tokens_ || std::ranges::find(ends_, token) == ends_.end());
}

TokenConstraint::State TokenLimits::advance(State state, TokenId token) {
  const auto [inner, count, beginning] = keys_[static_cast<size_t>(state)];
  if (!may_come({inner, count, beginning}, token)) return kDead;
  const State next = inner_ ? inner_->advance(inner, token) : 0;
  if (next == kDead) return kDead;
  return state_of({next, std::min(count + 1, min_tokens_), beginning_after(beginning, token)});
}

std::span<const uint64_t> TokenLimits::allowed(State state) {
  const auto [inner, count, beginning] = keys_[static_cast<size_t>(state)];
  words_ = always_;
  if (inner_) {
    const std::span<const uint64_t> others = inner_->allowed(inner);
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= i < others.size() ? others[i] : 0;
  }
  for (const TokenId token : beginnings_[static_cast<size_t>(beginning)].forbidden)
    remove_token(words_, token);
  if (count < min_tokens_) {
    for (const TokenId token : ends_) remove_token(words_, token);
  }
  return words_;
}

bool TokenLimits::is_complete(State state) {
  return inner_ && inner_->is_complete(std::get<0>(keys_[static_cast<size_t>(state)]));
}

}  // namespace outrider
