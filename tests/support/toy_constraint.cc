// SPDX-License-Identifier: Apache-2.0
#include "tests/support/toy_constraint.h"

#include <stdexcept>

#include "base/counter_rng.h"

namespace outrider {
namespace {

constexpr TokenConstraint::State kStates = 24;
constexpr TokenConstraint::State kEnd = kStates - 1;
// Keys of hash() for questions that are not about a token.
constexpr uint64_t kMayEnd = 1ull << 40;
constexpr uint64_t kOnlyToken = kMayEnd + 1;
constexpr uint64_t kThrows = kMayEnd + 2;

}  // namespace

std::shared_ptr<TokenConstraint> ToyConstraint::make(const Options& options) {
  if (options.language == ToyLanguage::kAny) return nullptr;
  return std::make_shared<ToyConstraint>(options);
}

uint64_t ToyConstraint::hash(State state, uint64_t what) const {
  return mix64(mix64(options_.seed ^ static_cast<uint64_t>(state) << 32) ^ what);
}

bool ToyConstraint::may_come(State state, TokenId token) const {
  const auto id = static_cast<uint64_t>(token);
  if (options_.language == ToyLanguage::kEven) return token % 2 == 0 || token == options_.eos;
  if (state == kEnd) return token == options_.eos && options_.language != ToyLanguage::kPhrases;
  if (token == options_.eos)
    return options_.language == ToyLanguage::kAutomaton && hash(state, kMayEnd) % 3 == 0;
  if (options_.language == ToyLanguage::kHostile && state % 11 == 7) return false;
  if (options_.language == ToyLanguage::kPhrases && state % 4 != 0) return token == only_token(state);
  return hash(state, id) % 100 < 40;
}

TokenId ToyConstraint::only_token(State state) const {
  const auto vocabulary = static_cast<uint64_t>(options_.vocabulary);
  const auto token = static_cast<TokenId>(hash(state, kOnlyToken) % vocabulary);
  return token == options_.eos ? (token + 1) % options_.vocabulary : token;
}

void ToyConstraint::misbehave(State state, uint64_t what) const {
  if (options_.language != ToyLanguage::kHostile) return;
  const uint64_t draw = hash(state, kThrows + what) % 40;
  if (draw == 0) throw std::runtime_error("the constraint is angry");
  if (draw == 1) throw 1;
}

TokenConstraint::State ToyConstraint::advance(State state, TokenId token) {
  misbehave(state, 1 + static_cast<uint64_t>(token));
  if (token == options_.eos || !may_come(state, token)) return kDead;
  if (options_.language == ToyLanguage::kEven) return state;
  return static_cast<State>(hash(state, ~static_cast<uint64_t>(token)) % kStates);
}

std::span<const uint64_t> ToyConstraint::allowed(State state) {
  misbehave(state, 0);
  words_.assign(static_cast<size_t>(options_.vocabulary) / 64 + 1, 0);
  for (TokenId token = 0; token < options_.vocabulary; ++token) {
    if (may_come(state, token)) words_[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
  }
  if (options_.language == ToyLanguage::kHostile && state % 13 == 5) words_.clear();
  return words_;
}

bool ToyConstraint::is_complete(State state) {
  misbehave(state, 1 << 20);
  return options_.language != ToyLanguage::kEven && state == kEnd;
}

}  // namespace outrider
