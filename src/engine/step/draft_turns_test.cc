// SPDX-License-Identifier: Apache-2.0
#include "engine/step/draft_turns.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

// The share of steps with turns, among the steps after the first hundred, where steps are that fast.
double share_of_turns(double tokens_with, double tokens_without) {
  DraftTurns turns;
  int taken = 0;
  constexpr int kSteps = 4000, kFirst = 100;
  for (int step = 0; step < kSteps; ++step) {
    taken += step >= kFirst && turns.are_taken() ? 1 : 0;
    turns.learn(turns.are_taken() ? tokens_with : tokens_without, 10);
  }
  return static_cast<double>(taken) / (kSteps - kFirst);
}

TEST(DraftTurns, TheFasterWayIsKeptAndTheOtherTriedNowAndThen) {
  EXPECT_GT(share_of_turns(12, 8), 0.9);
  EXPECT_LT(share_of_turns(12, 8), 1.0);
  EXPECT_LT(share_of_turns(8, 12), 0.1);
  EXPECT_GT(share_of_turns(8, 12), 0.0);
}

TEST(DraftTurns, AChangeIsNoticed) {
  DraftTurns turns;
  for (int step = 0; step < 1000; ++step) turns.learn(turns.are_taken() ? 12 : 8, 10);
  EXPECT_TRUE(turns.are_taken());
  int taken = 0;
  for (int step = 0; step < 2000; ++step) {
    taken += turns.are_taken() ? 1 : 0;
    turns.learn(turns.are_taken() ? 5 : 8, 10);
  }
  EXPECT_LT(taken, 400);
}

}  // namespace
}  // namespace outrider
