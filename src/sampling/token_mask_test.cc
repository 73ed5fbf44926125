// SPDX-License-Identifier: Apache-2.0
#include "sampling/token_mask.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace outrider {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

TEST(MaskLogits, KeepsWhatTheSetHolds) {
  std::mt19937_64 random(1);
  std::vector<float> masked;
  for (const size_t size : {1, 63, 64, 65, 130, 1000}) {
    for (const size_t words : {size_t{0}, size / 128, (size + 63) / 64, size / 64 + 3}) {
      std::vector<uint64_t> set(words);
      for (uint64_t& word : set) word = random() % 4 == 0 ? 0 : random();
      std::vector<float> logits(size);
      for (size_t i = 0; i < size; ++i) logits[i] = static_cast<float>(i);
      mask_logits(logits, set, masked);
      ASSERT_EQ(masked.size(), size);
      for (size_t i = 0; i < size; ++i) {
        const bool holds = i < words * 64 && (set[i / 64] & uint64_t{1} << (i % 64)) != 0;
        ASSERT_EQ(contains(set, static_cast<TokenId>(i)), holds);
        ASSERT_EQ(masked[i], holds ? logits[i] : kForbidden);
      }
    }
  }
  EXPECT_FALSE(contains(std::vector<uint64_t>{~uint64_t{0}}, -1));
}

TEST(TokenSets, HoldTheTokensBelowTheirCount) {
  for (const int64_t count : {1, 63, 64, 65, 130}) {
    std::vector<uint64_t> all = all_tokens(count), none = no_tokens(count);
    for (TokenId token = 0; token < 200; ++token) {
      EXPECT_EQ(contains(all, token), token < count);
      EXPECT_FALSE(contains(none, token));
    }
    const auto last = static_cast<TokenId>(count - 1);
    add_token(none, last);
    EXPECT_TRUE(contains(none, last));
    remove_token(all, last);
    remove_token(all, 1000);  // not in it
    EXPECT_FALSE(contains(all, last));
    EXPECT_EQ(contains(all, 0), count > 1);
  }
}

// Allows token 0 at any time, token 1 once, and the end (2) after token 1.
class Once final : public TokenConstraint {
 public:
  State start() override { return 0; }
  State advance(State state, TokenId token) override {
    if (token == 0) return state;
    return token == 1 && state == 0 ? 1 : kDead;
  }
  std::span<const uint64_t> allowed(State state) override {
    word_ = state == 0 ? 0b011 : 0b101;
    return {&word_, 1};
  }
  bool is_complete(State) override { return false; }

 private:
  uint64_t word_ = 0;
};

TEST(Advanced, TellsTheEndFromWhatMayNotCome) {
  Once once;
  EXPECT_TRUE(advanced(once, 0, 1).is_allowed);
  EXPECT_EQ(advanced(once, 0, 1).state, 1);
  EXPECT_FALSE(advanced(once, 1, 1).is_allowed);
  EXPECT_TRUE(advanced(once, 1, 2).is_allowed);
  EXPECT_EQ(advanced(once, 1, 2).state, TokenConstraint::kDead);
  EXPECT_FALSE(advanced(once, 0, 2).is_allowed);
  EXPECT_FALSE(advanced(once, TokenConstraint::kDead, 0).is_allowed);
}

}  // namespace
}  // namespace outrider
