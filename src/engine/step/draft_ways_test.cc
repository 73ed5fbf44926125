// SPDX-License-Identifier: Apache-2.0
#include "engine/step/draft_ways.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

// Tokens of a step of 10 ms, by [takes_turns][guesses].
using Speeds = double[2][2];

double speed(const Speeds& speeds, const DraftWay& way) {
  return speeds[way.takes_turns ? 1 : 0][way.guesses ? 1 : 0];
}

// The share of steps of this way, among the steps after the first two hundred, where steps are that fast.
double share_of(DraftWays ways, const DraftWay& wanted, const Speeds& speeds) {
  int taken = 0;
  constexpr int kSteps = 8000, kFirst = 200;
  for (int step = 0; step < kSteps; ++step) {
    const DraftWay way = ways.way();
    if (step >= kFirst && way.takes_turns == wanted.takes_turns && way.guesses == wanted.guesses) ++taken;
    ways.learn(speed(speeds, way), 10);
  }
  return static_cast<double>(taken) / (kSteps - kFirst);
}

TEST(DraftWays, TheFastestIsKeptAndTheOthersTriedNowAndThen) {
  for (const bool turns : {false, true}) {
    for (const bool guesses : {false, true}) {
      Speeds speeds = {{8, 8}, {8, 8}};
      speeds[turns ? 1 : 0][guesses ? 1 : 0] = 12;
      for (const bool other_turns : {false, true}) {
        for (const bool other_guesses : {false, true}) {
          const double share =
              share_of(DraftWays(DraftAhead::kAuto, true), {other_turns, other_guesses}, speeds);
          const bool is_fastest = other_turns == turns && other_guesses == guesses;
          EXPECT_GT(share, is_fastest ? 0.9 : 0.0);
          EXPECT_LT(share, is_fastest ? 1.0 : 0.05);
        }
      }
    }
  }
}

TEST(DraftWays, OnlyAllowedWaysAreTried) {
  const Speeds speeds = {{8, 8}, {8, 8}};
  EXPECT_EQ(share_of(DraftWays(DraftAhead::kOff, false), {false, false}, speeds), 1.0);
  EXPECT_EQ(share_of(DraftWays(DraftAhead::kOn, false), {false, true}, speeds), 1.0);
  const DraftWays off(DraftAhead::kOff, true), on(DraftAhead::kOn, true), alone(DraftAhead::kAuto, false);
  EXPECT_EQ(share_of(off, {false, true}, speeds) + share_of(off, {true, true}, speeds), 0.0);
  EXPECT_EQ(share_of(on, {false, false}, speeds) + share_of(on, {true, false}, speeds), 0.0);
  EXPECT_EQ(share_of(alone, {true, false}, speeds) + share_of(alone, {true, true}, speeds), 0.0);
}

TEST(DraftWays, AChangeIsNoticed) {
  DraftWays ways(DraftAhead::kAuto, true);
  const Speeds first = {{8, 8}, {12, 8}}, then = {{8, 8}, {5, 8}};
  for (int step = 0; step < 2000; ++step) ways.learn(speed(first, ways.way()), 10);
  EXPECT_TRUE(ways.way().takes_turns && !ways.way().guesses);
  int taken = 0;
  for (int step = 0; step < 4000; ++step) {
    taken += ways.way().takes_turns && !ways.way().guesses ? 1 : 0;
    ways.learn(speed(then, ways.way()), 10);
  }
  EXPECT_LT(taken, 400);
}

}  // namespace
}  // namespace outrider
