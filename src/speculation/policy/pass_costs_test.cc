// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/pass_costs.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace outrider {
namespace {

TEST(PassCosts, LinearBetweenPointsAndBeyondTheLast) {
  const PassCosts costs({{1, 1.0, 2.0}, {4, 2.5, 5.0}, {8, 2.5, 5.0}, {16, 6.5, 5.0}});
  EXPECT_DOUBLE_EQ(costs.pass_ms(1, 0), 1.0);
  EXPECT_DOUBLE_EQ(costs.pass_ms(2, 0), 1.5);
  EXPECT_DOUBLE_EQ(costs.pass_ms(4, 0), 2.5);
  EXPECT_DOUBLE_EQ(costs.pass_ms(6, 0), 2.5);
  EXPECT_DOUBLE_EQ(costs.pass_ms(12, 0), 4.5);
  EXPECT_DOUBLE_EQ(costs.pass_ms(32, 0), 14.5);
  EXPECT_DOUBLE_EQ(costs.pass_ms(1, 500), 2.0);
  EXPECT_DOUBLE_EQ(costs.pass_ms(2.5, 1000), 5.25);
}

TEST(PassCosts, OnePointIsAConstant) {
  const PassCosts costs({{1, 3.0, 1.0}});
  EXPECT_DOUBLE_EQ(costs.pass_ms(1, 2000), 5.0);
  EXPECT_DOUBLE_EQ(costs.pass_ms(100, 2000), 5.0);
}

// Points measured with a smaller time at more rows are averaged.
TEST(PassCosts, MoreRowsNeverCostLess) {
  const PassCosts costs({{1, 3.0, 4.0}, {2, 2.0, 1.0}, {4, 5.0, 3.0}});
  EXPECT_DOUBLE_EQ(costs.pass_ms(1, 0), 2.5);
  EXPECT_DOUBLE_EQ(costs.pass_ms(2, 0), 2.5);
  EXPECT_DOUBLE_EQ(costs.pass_ms(2, 1000), 5.0);
  EXPECT_DOUBLE_EQ(costs.pass_ms(400, 0), 5.0 + 1.25 * 396.0);
  EXPECT_DOUBLE_EQ(costs.pass_ms(4, 8000), 29.0);
}

// Without other passes, a slower machine is the likeliest cause.
TEST(PassCosts, TheFirstPassCorrectsAllPoints) {
  PassCosts costs({{1, 1.0, 0.0}, {8, 2.0, 0.0}, {64, 4.0, 0.0}});
  costs.learn({.rows = 8, .context = 0, .ms = 3.0});  // 1.5 times the expected time
  EXPECT_GT(costs.pass_ms(1, 0), 1.3);
  EXPECT_GT(costs.pass_ms(8, 0), 2.0 * costs.pass_ms(1, 0));
  EXPECT_LT(costs.pass_ms(8, 0), 3.0);
  EXPECT_GT(costs.pass_ms(64, 0), 4.0 * 1.3);
}

// Where drafting seems not to pay, drafts are rare, so plain passes must correct the costs of drafts too.
TEST(PassCosts, AFasterMachineIsFasterWithDrafts) {
  PassCosts costs({{1, 1.0, 1.0}, {2, 1.1, 1.0}, {4, 1.2, 1.0}, {8, 1.3, 1.0}});
  for (int i = 0; i < 100; ++i) costs.learn({.rows = 1, .context = 200, .ms = 0.6});
  EXPECT_NEAR(costs.pass_ms(4, 200), 0.7, 0.05);
  EXPECT_NEAR(costs.pace(), 0.5, 0.02);
}

// A badly measured point is corrected without changing points that passes have confirmed.
TEST(PassCosts, PassesOfOtherRowCountsDoNotUndoWhatIsLearned) {
  PassCosts costs({{1, 1.0, 0.0}, {4, 1.2, 0.0}, {8, 2.0, 0.0}, {64, 4.0, 0.0}});
  for (int i = 0; i < 100; ++i) costs.learn({.rows = 1, .context = 0, .ms = 1.0});
  for (int i = 0; i < 20; ++i) {
    costs.learn({.rows = 8, .context = 0, .ms = 1.4});
    costs.learn({.rows = 1, .context = 0, .ms = 1.0});
  }
  EXPECT_NEAR(costs.pass_ms(1, 0), 1.0, 0.03);
  EXPECT_NEAR(costs.pass_ms(8, 0), 1.4, 0.07);
  EXPECT_LT(costs.pass_ms(64, 0), 3.8);
}

TEST(PassCosts, AStallCountsLittleAndNonsenseNothing) {
  PassCosts costs({{1, 1.0, 0.0}, {8, 2.0, 0.0}});
  for (const double ms : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
    costs.learn({.rows = 8, .context = 0, .ms = ms});
  EXPECT_DOUBLE_EQ(costs.pass_ms(8, 0), 2.0);
  for (int i = 0; i < 50; ++i) costs.learn({.rows = 8, .context = 0, .ms = 2.0});
  costs.learn({.rows = 8, .context = 0, .ms = std::numeric_limits<double>::infinity()});
  EXPECT_NEAR(costs.pass_ms(8, 0), 2.1, 0.1);
  costs.learn({.rows = 8, .context = 0, .ms = 1e-9});
  EXPECT_NEAR(costs.pass_ms(8, 0), 2.0, 0.1);
}

TEST(PassCosts, ConvergesToTheTimeOfPasses) {
  PassCosts costs({{1, 1.0, 2.0}, {8, 2.0, 2.0}, {16, 3.0, 2.0}});
  for (int i = 0; i < 400; ++i) costs.learn({.rows = 8, .context = 500, .ms = 6.0});
  EXPECT_NEAR(costs.pass_ms(8, 500), 6.0, 0.01);
}

// Passes of some sizes become slower or faster while others are not run.
TEST(PassCosts, StaysInOrderWhateverItLearns) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    PassCosts costs({{1, 1.0, 2.0}, {8, 1.2, 1.0}, {64, 3.0, 3.0}, {128, 5.0, 2.5}});
    const int only = 1 << random() % 8;
    const double pace = random() % 2 == 0 ? 50.0 : 0.02;
    for (int i = 0; i < 200; ++i) {
      const int rows = random() % 10 == 0 ? 1 << random() % 8 : only;
      costs.learn({.rows = static_cast<double>(rows), .context = 100, .ms = pace});
      double before = 0.0;
      for (const double rows_asked : {1.0, 2.0, 8.0, 9.0, 63.0, 64.0, 100.0, 128.0, 500.0}) {
        const double ms = costs.pass_ms(rows_asked, 8000);
        ASSERT_GT(ms, 0.0);
        ASSERT_GE(ms, before * (1.0 - 1e-12)) << rows_asked << " rows, after passes of " << only;
        before = ms;
      }
    }
  }
}

// Eight experts of 0.3 ms each in a pass over one row; eight unlike rows activate 50.
PassCosts costs_of_experts() {
  return PassCosts({{.rows = 1, .ms = 10.0, .active_experts = 8.0},
                    {.rows = 4, .ms = 17.0, .active_experts = 30.0, .ms_per_expert = 0.3},
                    {.rows = 8, .ms = 24.0, .active_experts = 50.0, .ms_per_expert = 0.3}});
}

TEST(PassCosts, RowsThatShareExpertsCostLess) {
  PassCosts costs = costs_of_experts();
  EXPECT_DOUBLE_EQ(costs.pass_ms(8, 0), 24.0);
  for (int i = 0; i < 60; ++i) costs.learn({.rows = 8, .active_experts = 20.0, .ms = 15.0});
  EXPECT_NEAR(costs.pass_ms(8, 0), 15.0, 0.3);
  EXPECT_NEAR(costs.pass_ms(4, 0), 17.0 - 0.3 * 22.0 * 30.0 / 42.0, 0.3);  // the same share is active
  EXPECT_NEAR(costs.pass_ms(1, 0), 10.0, 0.2);
  EXPECT_NEAR(costs.pace(), 1.0, 0.02);
}

// Passes with times that differ only by their experts say nothing about the machine.
TEST(PassCosts, TheExpertsOfAPassExplainItsTime) {
  PassCosts costs = costs_of_experts();
  for (int i = 0; i < 100; ++i) {
    const double active_experts = i % 2 == 0 ? 14.0 : 44.0;
    costs.learn({.rows = 8, .active_experts = active_experts, .ms = 24.0 - 0.3 * (50.0 - active_experts)});
  }
  EXPECT_NEAR(costs.pass_ms(8, 0), 24.0 - 0.3 * 21.0, 1.0);
  EXPECT_NEAR(costs.pace(), 1.0, 0.05);
}

// Passes of one row, and more experts than unlike rows were seen to activate, leave the prediction within
// bounds.
TEST(PassCosts, TheShareOfExpertsStaysWithinBounds) {
  PassCosts costs = costs_of_experts();
  for (int i = 0; i < 50; ++i) costs.learn({.rows = 1, .active_experts = 8.0, .ms = 10.0});
  EXPECT_NEAR(costs.pass_ms(8, 0), 24.0, 0.3);
  for (int i = 0; i < 50; ++i) costs.learn({.rows = 8, .active_experts = 80.0, .ms = 33.0});
  EXPECT_NEAR(costs.pass_ms(8, 0), 24.0, 1.0);
  for (int i = 0; i < 200; ++i) costs.learn({.rows = 8, .active_experts = 4.0, .ms = 11.0});
  EXPECT_GE(costs.pass_ms(8, 0), costs.pass_ms(1, 0));
}

}  // namespace
}  // namespace outrider
