// SPDX-License-Identifier: Apache-2.0
#include "engine/token_limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "sampling/token_mask.h"

namespace outrider {
namespace {

using Rules = TokenLimits::Rules;
using Tokens = std::vector<TokenId>;

// The rules applied to the whole output.
bool may_come(const Rules& rules, const Tokens& output, TokenId token) {
  if (!rules.allowed.empty() && std::ranges::find(rules.allowed, token) == rules.allowed.end()) return false;
  if (std::cmp_less(output.size(), rules.min_tokens) &&
      std::ranges::find(rules.ends, token) != rules.ends.end())
    return false;
  Tokens longer = output;
  longer.push_back(token);
  return std::ranges::none_of(rules.forbidden, [&](const Tokens& sequence) {
    return sequence.size() <= longer.size() &&
           std::equal(sequence.rbegin(), sequence.rend(), longer.rbegin());
  });
}

// A constraint with the last id as its state: it forbids the id that is three more.
class NoThirds final : public TokenConstraint {
 public:
  explicit NoThirds(TokenId vocabulary) : vocabulary_(vocabulary) {}
  State start() override { return 0; }
  State advance(State state, TokenId token) override { return token == state + 3 ? kDead : token; }
  std::span<const uint64_t> allowed(State state) override {
    words_.assign(1, (uint64_t{1} << vocabulary_) - 1);
    if (state + 3 < vocabulary_) words_[0] &= ~(uint64_t{1} << (state + 3));
    return words_;
  }
  bool is_complete(State) override { return false; }

 private:
  TokenId vocabulary_;
  std::vector<uint64_t> words_;
};

TEST(TokenLimits, AreWhatTheRulesSayOnRandomWalksThatGoBack) {
  std::mt19937_64 random(5);
  const auto below = [&](int64_t max) { return static_cast<int64_t>(random() % static_cast<uint64_t>(max)); };
  for (int run = 0; run < 300; ++run) {
    const auto vocabulary = static_cast<TokenId>(3 + below(4));
    Rules rules{.vocab_size = vocabulary, .min_tokens = below(6), .ends = {0, 1}};
    for (int64_t i = below(5); i > 0; --i) {
      Tokens& sequence = rules.forbidden.emplace_back();
      for (int64_t length = 1 + below(4); length > 0; --length)
        sequence.push_back(static_cast<TokenId>(below(vocabulary)));
    }
    if (below(3) == 0) rules.allowed = {0, 2, static_cast<TokenId>(vocabulary - 1)};
    const bool has_inner = below(2) == 0;
    NoThirds inner(vocabulary);
    TokenLimits limits(rules, has_inner ? std::make_shared<NoThirds>(vocabulary) : nullptr);
    struct Place {
      Tokens output;
      TokenConstraint::State state;
    };
    std::vector<Place> places = {{{}, limits.start()}};
    for (int step = 0; step < 60; ++step) {
      const Place place = places[static_cast<size_t>(below(std::ssize(places)))];
      const auto words = limits.allowed(place.state);
      const std::vector<uint64_t> mask(words.begin(), words.end());
      for (TokenId token = 0; token < vocabulary; ++token) {
        const bool inner_lets =
            !has_inner || inner.advance(place.output.empty() ? 0 : place.output.back(), token) != -1;
        const bool expected = inner_lets && may_come(rules, place.output, token);
        ASSERT_EQ(contains(mask, token), expected) << run << ' ' << token;
        const TokenConstraint::State next = limits.advance(place.state, token);
        ASSERT_EQ(next != TokenConstraint::kDead, expected) << run << ' ' << token;
        if (!expected || place.output.size() > 12) continue;
        Place further{place.output, next};
        further.output.push_back(token);
        if (below(2) == 0) places.push_back(std::move(further));
      }
      EXPECT_FALSE(contains(mask, vocabulary)) << "beyond the vocabulary";
    }
  }
}

TEST(TokenLimits, StatesDoNotGrowWithTheOutput) {
  TokenLimits limits({.vocab_size = 100, .forbidden = {{1, 2, 3}}, .min_tokens = 5, .ends = {0}}, nullptr);
  TokenConstraint::State state = limits.start(), max = state;
  for (int i = 0; i < 10000; ++i) max = std::max(max, state = limits.advance(state, 7 + i % 50));
  EXPECT_LE(max, 6);
}

}  // namespace
}  // namespace outrider
