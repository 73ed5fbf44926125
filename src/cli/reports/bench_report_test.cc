// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/bench_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace outrider {
namespace {

PromptMeasurement measured(double plain, double speculative, int64_t steps, int64_t committed) {
  PromptMeasurement result;
  result.category = plain < 15 ? "slow" : "fast";
  result.plain_rate = plain;
  result.speculative_rate = speculative;
  result.stats.method = "NGram";
  result.stats.steps = steps;
  result.stats.committed = committed;
  result.stats.drafted = 2 * steps;
  result.stats.accepted = committed - steps;
  result.stats.drafted_per_position = {steps, steps};
  result.stats.accepted_per_position = {committed - steps, 0};
  return result;
}

TEST(BenchReport, MedianOfOddEvenAndNone) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
}

// Ranks by the table of the binomial distribution: of 20 values the 6th and the 15th.
TEST(BenchReport, TheMedianHasAnInterval) {
  std::vector<double> values = {6, 1, 2, 5, 4};
  EXPECT_FALSE(median_interval(values));
  values.push_back(3);
  EXPECT_EQ(median_interval(values), std::pair(1.0, 6.0));
  values.clear();
  for (int i = 20; i > 0; --i) values.push_back(i);
  EXPECT_EQ(median_interval(values), std::pair(6.0, 15.0));
}

TEST(BenchReport, FiguresAreOverStepsNotOverPrompts) {
  const std::vector<PromptMeasurement> prompts = {measured(10, 30, 10, 20), measured(20, 20, 30, 30),
                                                  measured(30, 60, 10, 15)};
  const auto json = bench_json({}, prompts);
  EXPECT_EQ(json["plain_tokens_per_second"], 20.0);
  EXPECT_EQ(json["speculative_tokens_per_second"], 30.0);
  EXPECT_EQ(json["speedup"], 1.5);
  EXPECT_EQ(json["speedup_median_of_prompts"], 2.0);
  EXPECT_EQ(json["acceptance_length"], 65.0 / 50.0);
  EXPECT_EQ(json["acceptance_rate"], 15.0 / 100.0);
  EXPECT_EQ(json["acceptance_rate_per_position"][0], 15.0 / 50.0);
  EXPECT_EQ(json["categories"]["slow"]["speedup"], 3.0);
}

// Tokens per pass of the prompts are 2, 1 and 1.5, in all 1.3: residuals 7, -9 and 2. The ratio estimator
// makes sqrt(134 * 3 / 2) / 50 of them; 4.303 is Student's quantile for two degrees of freedom.
TEST(BenchReport, TheLengthHasAnIntervalOverPrompts) {
  const std::vector<PromptMeasurement> prompts = {measured(10, 30, 10, 20), measured(20, 20, 30, 30),
                                                  measured(30, 60, 10, 15)};
  const auto json = bench_json({}, prompts);
  EXPECT_NEAR(json["acceptance_length_margin"].get<double>(), 4.3027 * std::sqrt(134 * 1.5) / 50, 1e-4);
  EXPECT_EQ(bench_json({}, {prompts[0]})["acceptance_length_margin"], 0.0);
  EXPECT_NE(bench_text({}, prompts).find("1.30 ± 1.22 (95% over prompts)"), std::string::npos);
}

TEST(BenchReport, SaysWhatIsDrafted) {
  BenchSetup setup;
  setup.speculation.decoding_type = Method::kSuffix;
  setup.speculation.max_draft_len = 5;
  const std::vector<PromptMeasurement> prompts = {measured(10, 30, 10, 20)};
  EXPECT_NE(bench_text(setup, prompts).find(", chains of at most 5 tokens\n"), std::string::npos);
  setup.speculation.tree.kind = TreeKind::kDynamic;
  setup.speculation.tree.max_total_draft_tokens = 24;
  EXPECT_NE(bench_text(setup, prompts).find(", dynamic trees of at most 24 tokens in 5 levels\n"),
            std::string::npos);
  EXPECT_EQ(bench_json(setup, prompts)["tree"], "dynamic");
  setup.speculation.decoding_type = Method::kLookahead;
  EXPECT_NE(bench_text(setup, prompts).find(", trees of its own\n"), std::string::npos);
  EXPECT_EQ(bench_json(setup, prompts)["tree"], "own");
}

TEST(BenchReport, SaysWhenOutputsDiffer) {
  std::vector<PromptMeasurement> prompts = {measured(10, 30, 10, 20)};
  prompts[0].identical = false;
  EXPECT_EQ(bench_json({}, prompts)["identical"], false);
  EXPECT_NE(bench_text({}, prompts).find("DIFFERENT for 1 of 1"), std::string::npos);
  BenchSetup rejection;
  rejection.compared = false;
  EXPECT_TRUE(bench_json(rejection, prompts)["identical"].is_null());
}

}  // namespace
}  // namespace outrider
