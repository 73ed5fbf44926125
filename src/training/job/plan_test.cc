// SPDX-License-Identifier: Apache-2.0
#include "training/job/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrider::training {
namespace {

JobRates rates() {
  return {.reading = 5000,
          .writing = 900,
          .first_step_s = 1,
          .last_step_s = 3,
          .open_s = 1,
          .token_s = 0.01,
          .head_share = 0.1};
}

JobSizes sizes() { return {.question_tokens = 60}; }

TEST(HeadPlan, FitsIntoItsHours) {
  for (const double hours : {1.0, 3.0, 8.0}) {
    for (const double speed : {0.05, 0.3, 1.0}) {
      JobRates here = rates();
      here.writing *= speed;
      here.last_step_s /= speed;
      const HeadPlan plan = plan_for_hours(hours, here, sizes());
      const JobForecast found = forecast(plan, here, sizes());
      EXPECT_NEAR(found.total_s(), hours * 3600, 0.02 * hours * 3600) << hours << " " << speed;
    }
  }
}

TEST(HeadPlan, WritesAsLongAsItTrains) {
  const HeadPlan plan = plan_for_hours(8, rates(), sizes());
  const JobForecast found = forecast(plan, rates(), sizes());
  EXPECT_GE(found.passes, 0.95);
  EXPECT_LE(found.passes, 5.05);
  JobRates slow_writer = rates();
  slow_writer.writing = 30;
  EXPECT_NEAR(forecast(plan_for_hours(8, slow_writer, sizes()), slow_writer, sizes()).passes, 5.0, 0.05);
  JobRates even = rates();
  even.writing = 300;
  const JobForecast both = forecast(plan_for_hours(8, even, sizes()), even, sizes());
  EXPECT_NEAR(both.text_s / both.training_s, 1.0, 0.05);
}

// Where measurements are dear, there are fewer of them.
TEST(HeadPlan, MeasuresSeldomWhereThatTakesLong) {
  JobRates slow = rates();
  slow.token_s = 0.05;
  const auto evaluations = [&](double hours) {
    const HeadPlan plan = plan_for_hours(hours, slow, sizes());
    return static_cast<double>(plan.steps) / static_cast<double>(plan.evaluate_every);
  };
  EXPECT_NEAR(evaluations(8), 4, 0.1);
  EXPECT_NEAR(evaluations(1), 1, 0.1);
  EXPECT_NEAR(forecast(plan_for_hours(1, slow, sizes()), slow, sizes()).total_s(), 3600, 72);
}

// A fast machine ends earlier than it was allowed to.
TEST(HeadPlan, TrainsNoLongerThanWasMeasured) {
  JobRates fast = rates();
  fast.writing = 1e6;
  fast.first_step_s = fast.last_step_s = 0.01;
  const JobForecast found = forecast(plan_for_hours(8, fast, sizes()), fast, sizes());
  EXPECT_NEAR(found.trained_tokens, 36e6, 1e5);
  EXPECT_LT(found.total_s(), 3600);
}

TEST(HeadPlan, OfStepsDependsOnNoRate) {
  JobRates other = rates();
  other.writing = 3;
  other.last_step_s = 70;
  const HeadPlan a = plan_for_steps(300, rates(), sizes()), b = plan_for_steps(300, other, sizes());
  EXPECT_EQ(a.prompts, b.prompts);
  EXPECT_EQ(a.steps, 300);
  EXPECT_EQ(b.steps, 300);
  EXPECT_EQ(a.evaluate_every, 75);
  EXPECT_NEAR(forecast(a, rates(), sizes()).passes, 2.0, 0.01);
  EXPECT_EQ(a.checkpoint_every, 96);  // 2.5 seconds each
  EXPECT_EQ(b.checkpoint_every, 5);
  EXPECT_GE(plan_for_steps(1, rates(), sizes()).prompts, 48);
}

TEST(ExpectedLengths, GoThroughTheMeasuredPoints) {
  EXPECT_DOUBLE_EQ(expected_lengths(2e6).chain, 1.56);
  EXPECT_DOUBLE_EQ(expected_lengths(35.7e6).tree, 2.91);
  EXPECT_DOUBLE_EQ(expected_lengths(1e9).tree, 2.91);
  EXPECT_DOUBLE_EQ(expected_lengths(0).chain, 1.0);
  double before = 0;
  for (double tokens = 1e4; tokens < 1e8; tokens *= 1.3) {
    const DraftLengths found = expected_lengths(tokens);
    EXPECT_GE(found.chain, before);
    EXPECT_GE(found.tree, found.chain);
    before = found.chain;
  }
}

TEST(ChainSpeedup, CountsTheBytesOfDrafts) {
  EXPECT_DOUBLE_EQ(chain_speedup(2.0, 5, 0.0), 2.0);
  EXPECT_DOUBLE_EQ(chain_speedup(2.0, 5, 0.2), 1.0);
}

TEST(ForecastText, NamesStagesAndSaysThatItIsAnEstimate) {
  const HeadPlan plan = plan_for_hours(8, rates(), sizes());
  const std::string text = forecast_text(plan, forecast(plan, rates(), sizes()));
  for (const char* part : {"text ", "training ", "measuring ", "proof ", "total ", " h ", "an estimate"})
    EXPECT_THAT(text, testing::HasSubstr(part));
}

}  // namespace
}  // namespace outrider::training
