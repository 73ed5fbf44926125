// SPDX-License-Identifier: Apache-2.0
// Constraints for tests: languages that are pure functions of a seed, over any vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "outrider/token_constraint.h"

namespace outrider {

enum class ToyLanguage {
  kAny,        // no constraint
  kEven,       // even ids, and the end at any time
  kAutomaton,  // some tokens in each of a few states; one state is the end, and some others may be
  kPhrases,    // mostly one token, sometimes a few; it ends without an end token
  kHostile,    // an automaton that throws, gives short masks, and has states that allow no token
};

class ToyConstraint final : public TokenConstraint {
 public:
  struct Options {
    ToyLanguage language = ToyLanguage::kEven;
    uint64_t seed = 0;
    TokenId vocabulary = 0;
    TokenId eos = 0;
  };
  explicit ToyConstraint(const Options& options) : options_(options) {}

  State start() override { return 0; }
  State advance(State state, TokenId token) override;
  std::span<const uint64_t> allowed(State state) override;
  bool is_complete(State state) override;

  // Null for kAny.
  static std::shared_ptr<TokenConstraint> make(const Options& options);

 private:
  uint64_t hash(State state, uint64_t what) const;
  bool may_come(State state, TokenId token) const;
  TokenId only_token(State state) const;
  void misbehave(State state, uint64_t what) const;

  Options options_;
  std::vector<uint64_t> words_;
};

}  // namespace outrider
