// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/draft_stats.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

DraftStats stats_of(int steps, double gain, double rows) {
  DraftStats stats;
  for (int i = 0; i < steps; ++i) stats.learn(gain, rows);
  return stats;
}

TEST(DraftStats, TheFirstStepsAreAMean) {
  DraftStats stats;
  for (const double gain : {2.0, 0.0, 1.0, 3.0}) stats.learn(gain, 2.0 * gain);
  EXPECT_DOUBLE_EQ(stats.gain, 1.5);
  EXPECT_DOUBLE_EQ(stats.rows, 3.0);
  EXPECT_EQ(stats.steps, 4.0);
}

TEST(DraftStats, OldStepsFade) {
  DraftStats stats = stats_of(1000, 3.0, 4.0);
  for (int i = 0; i < 200; ++i) stats.learn(0.0, 4.0);
  EXPECT_LT(stats.gain, 0.05);
}

// A few steps of the sequence outweigh its prior.
TEST(DraftStats, APriorCountsForFewSteps) {
  DraftStats stats = stats_of(1000, 3.0, 4.0);
  stats.become_prior();
  EXPECT_DOUBLE_EQ(stats.gain, 3.0);
  for (int i = 0; i < static_cast<int>(kPriorSteps); ++i) stats.learn(1.0, 4.0);
  EXPECT_DOUBLE_EQ(stats.gain, 2.0);
}

TEST(DraftStats, APausedSequenceFadesIntoTheStatisticsOfAll) {
  DraftStats own = stats_of(30, 0.0, 4.0);
  const DraftStats all = stats_of(30, 2.0, 4.0);
  for (int i = 0; i < 300; ++i) own.fade_into(all);
  EXPECT_NEAR(own.gain, 2.0, 0.01);
  EXPECT_NEAR(own.steps, kPriorSteps, 0.01);
}

TEST(DraftStats, AStallCountsAsTwiceTheUsualTimeAtMost) {
  DraftTime time;
  time.learn(1.0);
  time.learn(1000.0);
  EXPECT_DOUBLE_EQ(time.ms, 1.5);
}

TEST(PrefillTime, LearnsALine) {
  PrefillTime prefill;
  EXPECT_EQ(prefill.ms_of(100.0), 0.0);
  for (int i = 0; i < 20; ++i) {
    const double tokens = 40.0 + 90.0 * (i % 5);
    prefill.learn(0.5 + 0.02 * tokens, tokens);
  }
  EXPECT_EQ(prefill.ms_of(0.0), 0.0);  // no pause
  for (const double tokens : {20.0, 200.0, 800.0})
    EXPECT_NEAR(prefill.ms_of(tokens), 0.5 + 0.02 * tokens, 0.1 * (0.5 + 0.02 * tokens)) << tokens;
}

// All of these take one pass; the noise between them must not become a slope.
TEST(PrefillTime, ShortPausesDoNotPredictLongPrompts) {
  PrefillTime prefill;
  for (int i = 0; i < 40; ++i) prefill.learn(i % 3 == 0 ? 0.3 : 0.2, 2.0 + (i * 7) % 4);
  EXPECT_LT(prefill.ms_of(500.0), 0.5);
}

TEST(PrefillTime, AStallCountsAsTwiceTheUsualTimeAtMost) {
  PrefillTime prefill;
  prefill.learn(1.0, 100.0);
  prefill.learn(1000.0, 100.0);
  EXPECT_DOUBLE_EQ(prefill.ms_of(100.0), 1.5);
}

TEST(PrefillTime, AFirstStallIsForgotten) {
  PrefillTime prefill;
  prefill.learn(16.0, 54.0);
  EXPECT_FALSE(prefill.is_confirmed());
  prefill.learn(0.5, 54.0);
  EXPECT_TRUE(prefill.is_confirmed());
  EXPECT_LE(prefill.ms_of(54.0), 1.5);
  // A short text that is read faster is no reason to doubt.
  PrefillTime in_proportion;
  in_proportion.learn(16.0, 160.0);
  in_proportion.learn(0.0, 4.0);
  EXPECT_GE(in_proportion.ms_of(160.0), 8.0);
}

TEST(PrefillTime, AFirstLongPromptIsNoStall) {
  PrefillTime prefill;
  for (int i = 0; i < 10; ++i) prefill.learn(0.2, 10.0);
  prefill.learn(20.0, 1000.0);
  EXPECT_NEAR(prefill.ms_of(1000.0), 20.0, 4.0);
}

TEST(DraftStats, RunLengthsAreLearnedFromRunsThatEnded) {
  DraftStats all;
  all.learn_run(4.0);
  EXPECT_DOUBLE_EQ(all.run_steps, (kInitialRunSteps + 4.0) / 2.0);
  for (int i = 0; i < 50; ++i) all.learn_run(4.0);
  EXPECT_NEAR(all.run_steps, 4.0, 0.2);
  DraftStats sequence = all;
  sequence.prefill.learn(8.0, 100.0);
  DraftForecast forecast;
  forecast.add(sequence, 50.0);
  EXPECT_DOUBLE_EQ(forecast.draft_ms, sequence.prefill.ms_of(50.0) / all.run_steps);
}

TEST(DraftForecast, RemoveUndoesAdd) {
  DraftStats one = stats_of(5, 1.0, 4.0), other = stats_of(5, 0.5, 2.0);
  one.draft.learn(0.25);
  other.draft.learn(0.5);
  other.prefill.learn(8.0, 100.0);
  DraftForecast forecast{.tokens = 2.0};
  forecast.add(one, 0.0);
  const DraftForecast before = forecast;
  forecast.add(other, 200.0);
  EXPECT_DOUBLE_EQ(forecast.drafting, 2.0);
  EXPECT_DOUBLE_EQ(forecast.tokens, 3.5);
  EXPECT_DOUBLE_EQ(forecast.rows, 6.0);
  EXPECT_DOUBLE_EQ(forecast.draft_ms, 0.75 + other.prefill.ms_of(200.0) / kInitialRunSteps);
  forecast.remove(other, 200.0);
  EXPECT_DOUBLE_EQ(forecast.tokens, before.tokens);
  EXPECT_DOUBLE_EQ(forecast.draft_ms, before.draft_ms);
  EXPECT_DOUBLE_EQ(forecast.variance, before.variance);
}

TEST(DraftForecast, OptimisticIsOneStandardDeviationMore) {
  const DraftForecast forecast{.tokens = 3.0};
  EXPECT_DOUBLE_EQ(forecast.optimistic(4.0).tokens, 5.0);
  EXPECT_DOUBLE_EQ(forecast.optimistic(-1e-9).tokens, 3.0);  // negative by rounding
}

}  // namespace
}  // namespace outrider
