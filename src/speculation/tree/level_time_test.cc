// SPDX-License-Identifier: Apache-2.0
#include "speculation/tree/level_time.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(LevelTime, IsALineOverNodes) {
  LevelTime time;
  EXPECT_FALSE(time.is_known());
  for (int round = 0; round < 100; ++round) {
    for (const double nodes : {1.0, 4.0, 8.0}) time.learn(nodes, 0.5 + 0.1 * nodes);
  }
  EXPECT_NEAR(time.ms_per_node(), 0.1, 0.01);
  EXPECT_NEAR(time.ms_of(1.0), 0.6, 0.03);
  EXPECT_NEAR(time.ms_of(8.0), 1.3, 0.03);
}

TEST(LevelTime, AStallCountsAsTwiceTheUsualTime) {
  LevelTime stalled, doubled;
  for (LevelTime* time : {&stalled, &doubled}) time->learn(2.0, 1.0);
  stalled.learn(2.0, 1000.0);
  doubled.learn(2.0, 2.0);
  EXPECT_EQ(stalled.ms_of(2.0), doubled.ms_of(2.0));
}

// The first two times make a line that gives one node no time at all.
TEST(LevelTime, RecoversFromALineThatFallsToNothing) {
  LevelTime time;
  time.learn(8.0, 4.0);
  time.learn(4.0, 0.1);
  EXPECT_EQ(time.ms_of(1.0), 0.0);
  for (int round = 0; round < 200; ++round) time.learn(1.0, 0.5);
  EXPECT_NEAR(time.ms_of(1.0), 0.5, 0.05);
}

}  // namespace
}  // namespace outrider
