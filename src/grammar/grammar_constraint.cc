// SPDX-License-Identifier: Apache-2.0
#include "grammar/grammar_constraint.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "grammar/byte_automaton.h"
#include "grammar/token_masks.h"

namespace outrider {
namespace {

using State = TokenConstraint::State;

class Matcher : public GrammarMatcher, public std::enable_shared_from_this<Matcher> {
 public:
  Matcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie,
          std::vector<TokenId> ending)
      : trie_(std::move(trie)),
        automaton_(std::move(grammar), trie_->longest()),
        masks_(automaton_, trie_),
        ending_(std::move(ending)),
        only_end_(trie_->mask_words()) {
    std::sort(ending_.begin(), ending_.end());
    set_ending(only_end_, true);
  }

  State start() const { return automaton_.start(); }

  State advance(State state, TokenId token) {
    const std::string_view bytes = trie_->token_bytes(token);
    if (state == TokenConstraint::kDead || bytes.empty() || is_ending(token)) return TokenConstraint::kDead;
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < bytes.size() && state != TokenConstraint::kDead; ++i) {
      state = automaton_.advance(state, static_cast<uint8_t>(bytes[i]));
    }
    return state;
  }

  // The tokens that the grammar allows in `state`, and the ending tokens where it may end.
  void allowed(State state, TokenMask& mask) {
    const std::lock_guard lock(mutex_);
    if (automaton_.items(state).empty()) {
      mask = only_end_;
    } else {
      mask = *masks_.find(state);
      set_ending(mask, automaton_.may_end(state));
    }
  }

  bool is_complete(State state) {
    const std::lock_guard lock(mutex_);
    return automaton_.items(state).empty();
  }

  size_t mask_words() const { return trie_->mask_words(); }

  size_t bytes() const override {
    const std::lock_guard lock(mutex_);
    return automaton_.bytes() + masks_.bytes();
  }

  std::shared_ptr<TokenConstraint> make_constraint() override;

 private:
  bool is_ending(TokenId token) const { return std::binary_search(ending_.begin(), ending_.end(), token); }

  void set_ending(TokenMask& mask, bool value) const {
    for (const TokenId token : ending_) {
      if (token < 0 || token >= trie_->vocab_size()) continue;
      const uint64_t bit = uint64_t{1} << (token % 64);
      value ? mask[token / 64] |= bit : mask[token / 64] &= ~bit;
    }
  }

  mutable std::mutex mutex_;
  std::shared_ptr<const TokenTrie> trie_;
  ByteAutomaton automaton_;
  TokenMasks masks_;
  std::vector<TokenId> ending_;  // sorted
  TokenMask only_end_;
};

class Constraint : public TokenConstraint {
 public:
  explicit Constraint(std::shared_ptr<Matcher> matcher)
      : matcher_(std::move(matcher)), mask_(matcher_->mask_words()) {}

  State start() override { return matcher_->start(); }
  State advance(State state, TokenId token) override { return matcher_->advance(state, token); }
  std::span<const uint64_t> allowed(State state) override {
    if (state == TokenConstraint::kDead) {
      mask_.assign(mask_.size(), 0);
      shown_ = TokenConstraint::kDead;
    } else if (state != shown_) {
      matcher_->allowed(state, mask_);
      shown_ = state;
    }
    return mask_;
  }
  bool is_complete(State state) override {
    return state == TokenConstraint::kDead || matcher_->is_complete(state);
  }

 private:
  std::shared_ptr<Matcher> matcher_;
  TokenMask mask_;
  State shown_ = TokenConstraint::kDead;  // state of the mask returned last
};

std::shared_ptr<TokenConstraint> Matcher::make_constraint() {
  return std::make_shared<Constraint>(shared_from_this());
}

}  // namespace

std::shared_ptr<GrammarMatcher> GrammarMatcher::create(std::shared_ptr<const Grammar> grammar,
                                                       std::shared_ptr<const TokenTrie> trie,
                                                       std::vector<TokenId> ending) {
  return std::make_shared<Matcher>(std::move(grammar), std::move(trie), std::move(ending));
}

std::shared_ptr<TokenConstraint> make_constraint(std::shared_ptr<const Grammar> grammar,
                                                 std::shared_ptr<const TokenTrie> trie,
                                                 std::vector<TokenId> ending) {
  return GrammarMatcher::create(std::move(grammar), std::move(trie), std::move(ending))->make_constraint();
}

}  // namespace outrider
