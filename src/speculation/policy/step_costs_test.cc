// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/step_costs.h"

#include <gtest/gtest.h>

#include <cmath>

namespace outrider::step_costs_test {
namespace {

StepCosts costs() { return StepCosts(PassCosts({{1, 1.0, 0.0}, {9, 1.8, 0.0}})); }

TEST(StepCosts, APlainStepIsItsPassAndTheRest) {
  StepCosts step = costs();
  step.begin({.rows = 2.0, .sequences = 2.0}, 2.0);
  EXPECT_DOUBLE_EQ(step.plain_ms(), 1.1);
  step.learn_rest(false, 0.4);
  step.begin({.rows = 2.0, .sequences = 2.0}, 2.0);
  EXPECT_DOUBLE_EQ(step.plain_ms(), 1.5);
  EXPECT_DOUBLE_EQ(step.plain_rate(), 2.0 / 1.5);
  EXPECT_DOUBLE_EQ(step.drafting_rest_ms(), 0.0) << "without a drafting step, as in plain steps";
  step.begin({.rows = 8.0, .sequences = 8.0}, 8.0);
  EXPECT_DOUBLE_EQ(step.plain_ms(), 1.7 + 8 * 0.2) << "per sequence, from the nearest known batch size";
}

TEST(StepCosts, RowsOfPromptsDoNotMakeTokensCheaper) {
  StepCosts step = StepCosts(PassCosts({{1, 1.0, 0.0}, {9, 1.8, 0.0}, {109, 21.8, 0.0}}));
  step.begin({.rows = 2.0, .sequences = 2.0}, 2.0);
  const double plain = step.plain_rate();
  step.begin({.rows = 52.0, .sequences = 2.0}, 2.0);
  EXPECT_DOUBLE_EQ(step.plain_rate(), plain);
  // A row beside a prompt costs 0.2 ms, one of a small pass 0.1 ms.
  const DraftForecast drafted{.drafting = 2.0, .tokens = 3.0, .rows = 2.0};
  EXPECT_NEAR(step.rate(drafted), 3.0 / (1.1 + 0.4), 1e-12);
}

TEST(StepCosts, PredictionsDoNotChangeWithinAStep) {
  StepCosts step = costs();
  step.begin({.rows = 2.0, .sequences = 2.0}, 2.0);
  const double before = step.share_of_batch(2.0), plain = step.plain_ms();
  step.learn_batching(1.0, 1.0);
  step.learn_rest(false, 10.0);
  EXPECT_EQ(step.share_of_batch(2.0), before);
  EXPECT_EQ(step.plain_ms(), plain);
}

TEST(StepCosts, LearnsTheSavingOfDraftingTogether) {
  StepCosts step = costs();
  for (int i = 0; i < 400; ++i) {
    step.begin({.rows = 4.0, .sequences = 4.0}, 4.0);
    step.learn_batching(0.25, 1.0);  // four take as long as one
  }
  EXPECT_NEAR(step.share_of_batch(4.0), 0.25, 0.01);
  for (int i = 0; i < 400; ++i) {
    step.begin({.rows = 4.0, .sequences = 4.0}, 4.0);
    step.learn_batching(1.0, 1.0);
  }
  EXPECT_NEAR(step.share_of_batch(4.0), 1.0, 0.01);
  EXPECT_DOUBLE_EQ(step.share_of_batch(1.0), 1.0);
}

TEST(StepCosts, TheRateCountsRowsDraftsAndTheRest) {
  StepCosts step = costs();
  step.begin({.rows = 2.0, .sequences = 2.0}, 2.0);
  step.learn_rest(false, 0.4);
  step.learn_rest(true, 0.6);
  step.begin({.rows = 2.0, .sequences = 2.0}, 2.0);
  // One of two sequences drafts four rows in a millisecond; half of the additional rest of drafting counts.
  const DraftForecast one{.drafting = 1.0, .tokens = 4.0, .rows = 4.0, .draft_ms = 1.0};
  EXPECT_DOUBLE_EQ(step.rate(one), 4.0 / (1.5 + 0.5 + 1.0));
  const DraftForecast both{.drafting = 2.0, .tokens = 6.0, .rows = 8.0, .draft_ms = 2.0};
  EXPECT_DOUBLE_EQ(step.rate(both), 6.0 / (1.9 + 0.6 + 2.0 / std::sqrt(2.0)));
}

}  // namespace
}  // namespace outrider::step_costs_test
