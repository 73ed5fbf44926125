// SPDX-License-Identifier: Apache-2.0
#include "training/core/token_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "training/core/schedule.h"
#include "training/core/test_files.h"

namespace outrider::training {
namespace {

constexpr int kVocab = 100;
constexpr uint16_t kEnd = 99;

// Returns documents of ten tokens: 0 1 2 ... 8 kEnd.
std::vector<uint16_t> counting_documents(int documents) {
  std::vector<uint16_t> tokens;
  for (int i = 0; i < documents; ++i) {
    for (uint16_t token = 0; token < 9; ++token) tokens.push_back(token);
    tokens.push_back(kEnd);
  }
  return tokens;
}

class TokenDataTest : public testing::Test {
 protected:
  DataOptions options() const {
    return {.sources = {{"a", files_.path("a.u16"), 1.0}},
            .context_lengths = {4, 8},
            .batch_tokens = 32,
            .seed = 7,
            .vocab_size = kVocab,
            .document_end = kEnd};
  }
  void SetUp() override { files_.write_tokens("a.u16", counting_documents(50)); }

  TestFiles files_;
};

TEST_F(TokenDataTest, BatchDependsOnSeedAndStepAlone) {
  const auto first = TokenData::open(options());
  const auto second = TokenData::open(options());
  ASSERT_TRUE(first.ok() && second.ok());
  for (const int64_t step : {5, 0, 1000}) EXPECT_EQ(first->batch(step).tokens, second->batch(step).tokens);
  EXPECT_NE(first->batch(1).tokens, first->batch(2).tokens);
  DataOptions other = options();
  other.seed = 8;
  EXPECT_NE(first->batch(1).tokens, TokenData::open(other)->batch(1).tokens);
}

TEST_F(TokenDataTest, WindowsAreStretchesOfTheFile) {
  const auto data = TokenData::open(options());
  ASSERT_TRUE(data.ok());
  for (int64_t step = 0; step < 20; ++step) {
    const TokenBatch batch = data->batch(step);
    EXPECT_EQ(batch.windows * batch.length, 32);
    ASSERT_EQ(batch.tokens.size(), static_cast<size_t>(batch.windows * (batch.length + 1)));
    for (int64_t w = 0; w < batch.windows; ++w) {
      for (int64_t i = 0; i < batch.length; ++i) {
        const int32_t token = batch.tokens[static_cast<size_t>(w * (batch.length + 1) + i)];
        const int32_t next = batch.tokens[static_cast<size_t>(w * (batch.length + 1) + i + 1)];
        EXPECT_EQ(next, token == kEnd ? 0 : (token == 8 ? kEnd : token + 1));
      }
    }
  }
}

TEST_F(TokenDataTest, ManyWindowsBeginWithADocument) {
  const auto data = TokenData::open(options());
  ASSERT_TRUE(data.ok());
  int begins = 0, windows = 0;
  for (int64_t step = 0; step < 100; ++step) {
    const TokenBatch batch = data->batch(step);
    for (int64_t w = 0; w < batch.windows; ++w, ++windows) {
      begins += batch.tokens[static_cast<size_t>(w * (batch.length + 1))] == 0;
    }
  }
  EXPECT_GT(begins, windows * 4 / 10);  // one in ten would begin a document by mere chance
  EXPECT_LT(begins, windows * 7 / 10);
}

TEST_F(TokenDataTest, SharesDecideHowOftenASourceIsSeen) {
  files_.write_tokens("b.u16", std::vector<uint16_t>(500, 42));
  DataOptions mixed = options();
  mixed.sources = {{"a", files_.path("a.u16"), 3.0}, {"b", files_.path("b.u16"), 1.0}};
  const auto data = TokenData::open(mixed);
  ASSERT_TRUE(data.ok());
  int from_b = 0, windows = 0;
  for (int64_t step = 0; step < 300; ++step) {
    const TokenBatch batch = data->batch(step);
    for (int64_t w = 0; w < batch.windows; ++w, ++windows) {
      from_b += batch.tokens[static_cast<size_t>(w * (batch.length + 1))] == 42;
    }
  }
  EXPECT_NEAR(static_cast<double>(from_b) / windows, 0.25, 0.04);
}

TEST_F(TokenDataTest, EvaluationWindowsFollowEachOther) {
  const auto data = TokenData::open(options());
  ASSERT_TRUE(data.ok());
  const std::vector<TokenBatch> batches = data->evaluation_batches("a", 10);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].windows, 8);
  EXPECT_EQ(batches[1].windows, 2);
  EXPECT_THAT(std::vector<int32_t>(batches[0].tokens.begin(), batches[0].tokens.begin() + 5),
              testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(std::vector<int32_t>(batches[0].tokens.begin() + 5, batches[0].tokens.begin() + 10),
              testing::ElementsAre(4, 5, 6, 7, 8));
}

TEST_F(TokenDataTest, RefusesWhatItCannotUse) {
  DataOptions bad = options();
  bad.batch_tokens = 30;
  EXPECT_FALSE(TokenData::open(bad).ok());

  bad = options();
  bad.vocab_size = 50;  // the file holds 99
  const auto outside = TokenData::open(bad);
  ASSERT_FALSE(outside.ok());
  EXPECT_THAT(outside.error().message, testing::HasSubstr("token 99"));

  files_.write_bytes("odd.u16", "abc");
  bad = options();
  bad.sources[0].path = files_.path("odd.u16");
  EXPECT_FALSE(TokenData::open(bad).ok());

  bad.sources[0].path = files_.path("absent.u16");
  const auto absent = TokenData::open(bad);
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().kind, ErrorKind::kIo);
}

TEST(RateSchedule, WarmsUpThenFallsToItsFinalRate) {
  const RateSchedule schedule{.peak = 1.0, .final = 0.1, .warmup = 10, .steps = 111};
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(9), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(10), 1.0);
  EXPECT_NEAR(schedule.at(60), 0.55, 1e-12);
  EXPECT_NEAR(schedule.at(110), 0.1, 1e-12);
  for (int64_t step = 10; step < 110; ++step) EXPECT_GE(schedule.at(step), schedule.at(step + 1));
}

}  // namespace
}  // namespace outrider::training
