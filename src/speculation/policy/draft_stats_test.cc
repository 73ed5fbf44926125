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

// A prior says where to begin; a few steps of one's own outweigh it.
TEST(DraftStats, APriorCountsForFewSteps) {
  DraftStats stats = stats_of(1000, 3.0, 4.0);
  stats.be_prior();
  EXPECT_DOUBLE_EQ(stats.gain, 3.0);
  for (int i = 0; i < static_cast<int>(kStepsOfPrior); ++i) stats.learn(1.0, 4.0);
  EXPECT_DOUBLE_EQ(stats.gain, 2.0);
}

TEST(DraftStats, WhatAPausedSequenceKnewFadesIntoWhatAllKnow) {
  DraftStats own = stats_of(30, 0.0, 4.0);
  const DraftStats all = stats_of(30, 2.0, 4.0);
  for (int i = 0; i < 300; ++i) own.fade_into(all);
  EXPECT_NEAR(own.gain, 2.0, 0.01);
  EXPECT_NEAR(own.steps, kStepsOfPrior, 0.01);
}

TEST(DraftStats, AStallCountsAsTwiceTheUsualTimeAtMost) {
  DraftTime time;
  time.learn(1.0);
  time.learn(1000.0);
  EXPECT_DOUBLE_EQ(time.ms, 1.5);
}

TEST(ReadingTime, LearnsALine) {
  ReadingTime reading;
  EXPECT_EQ(reading.ms_of(100.0), 0.0);
  for (int i = 0; i < 20; ++i) {
    const double tokens = 40.0 + 90.0 * (i % 5);
    reading.learn(0.5 + 0.02 * tokens, tokens);
  }
  EXPECT_EQ(reading.ms_of(0.0), 0.0);  // no pause
  for (const double tokens : {20.0, 200.0, 800.0})
    EXPECT_NEAR(reading.ms_of(tokens), 0.5 + 0.02 * tokens, 0.1 * (0.5 + 0.02 * tokens)) << tokens;
}

// They take what one pass takes, one as much as the other; noise between them is no slope.
TEST(ReadingTime, ShortPausesSayNothingOfLongPrompts) {
  ReadingTime reading;
  for (int i = 0; i < 40; ++i) reading.learn(i % 3 == 0 ? 0.3 : 0.2, 2.0 + (i * 7) % 4);
  EXPECT_LT(reading.ms_of(500.0), 0.5);
}

TEST(ReadingTime, AStallCountsAsTwiceTheUsualTimeAtMost) {
  ReadingTime reading;
  reading.learn(1.0, 100.0);
  reading.learn(1000.0, 100.0);
  EXPECT_DOUBLE_EQ(reading.ms_of(100.0), 1.5);
}

TEST(ReadingTime, AFirstLongPromptIsNoStall) {
  ReadingTime reading;
  for (int i = 0; i < 10; ++i) reading.learn(0.2, 10.0);
  reading.learn(20.0, 1000.0);
  EXPECT_NEAR(reading.ms_of(1000.0), 20.0, 4.0);
}

TEST(DraftStats, RunsAreAsLongAsThoseThatEnded) {
  DraftStats all;
  all.learn_run(4.0);
  EXPECT_DOUBLE_EQ(all.run, (kStepsOfRun + 4.0) / 2.0);
  for (int i = 0; i < 50; ++i) all.learn_run(4.0);
  EXPECT_NEAR(all.run, 4.0, 0.2);
  DraftStats sequence = all;
  sequence.reading.learn(8.0, 100.0);
  DraftForecast forecast;
  forecast.add(sequence, 50.0);
  EXPECT_DOUBLE_EQ(forecast.draft_ms, sequence.reading.ms_of(50.0) / all.run);
}

TEST(DraftForecast, WhoLeavesLeavesNothingBehind) {
  DraftStats one = stats_of(5, 1.0, 4.0), other = stats_of(5, 0.5, 2.0);
  one.draft.learn(0.25);
  other.draft.learn(0.5);
  other.reading.learn(8.0, 100.0);
  DraftForecast forecast{.tokens = 2.0};
  forecast.add(one, 0.0);
  const DraftForecast before = forecast;
  forecast.add(other, 200.0);
  EXPECT_DOUBLE_EQ(forecast.drafting, 2.0);
  EXPECT_DOUBLE_EQ(forecast.tokens, 3.5);
  EXPECT_DOUBLE_EQ(forecast.rows, 6.0);
  EXPECT_DOUBLE_EQ(forecast.draft_ms, 0.75 + other.reading.ms_of(200.0) / kStepsOfRun);
  forecast.remove(other, 200.0);
  EXPECT_DOUBLE_EQ(forecast.tokens, before.tokens);
  EXPECT_DOUBLE_EQ(forecast.draft_ms, before.draft_ms);
  EXPECT_DOUBLE_EQ(forecast.variance, before.variance);
}

TEST(DraftForecast, AtBestIsOneDeviationMore) {
  const DraftForecast forecast{.tokens = 3.0};
  EXPECT_DOUBLE_EQ(forecast.at_best(4.0).tokens, 5.0);
  EXPECT_DOUBLE_EQ(forecast.at_best(-1e-9).tokens, 3.0);  // what rounding left
}

}  // namespace
}  // namespace outrider
