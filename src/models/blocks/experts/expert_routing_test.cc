// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/experts/expert_routing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace outrider {
namespace {

std::vector<ExpertChoice> choices_of(const ExpertTraits& traits, const std::vector<float>& outputs,
                                     const std::vector<float>& bias = {}) {
  std::vector<ExpertChoice> choices(static_cast<size_t>(traits.used));
  choose_experts({traits, outputs.data(), bias}, choices.data());
  return choices;
}

std::vector<int> experts_of(const std::vector<ExpertChoice>& choices) {
  std::vector<int> experts;
  for (const ExpertChoice& choice : choices) experts.push_back(choice.expert);
  return experts;
}

TEST(ChooseExperts, TakesTheLargestOutputsBestFirst) {
  const ExpertTraits traits{.count = 6, .used = 3};
  EXPECT_EQ(experts_of(choices_of(traits, {0.1F, 4, -1, 2, 3, 0})), (std::vector{1, 4, 3}));
}

TEST(ChooseExperts, OfEqualOutputsTheFirstExpertsAreTaken) {
  const ExpertTraits traits{.count = 6, .used = 3};
  EXPECT_EQ(experts_of(choices_of(traits, {1, 1, 1, 1, 1, 1})), (std::vector{0, 1, 2}));
  EXPECT_EQ(experts_of(choices_of(traits, {0, 2, 1, 2, 1, 2})), (std::vector{1, 3, 5}));
  EXPECT_EQ(experts_of(choices_of(traits, {0, 2, 1, 2, 1, 1})), (std::vector{1, 3, 2}));
  EXPECT_EQ(experts_of(choices_of(traits, {-0.0F, 0.0F, -1, -0.0F, 0.0F, -1})), (std::vector{0, 1, 3}));
}

TEST(ChooseExperts, NaNIsTheLowestOutput) {
  const float nan = std::nanf("");
  const ExpertTraits traits{.count = 4, .used = 2, .weights = RouterWeights::kSigmoid};
  EXPECT_EQ(experts_of(choices_of(traits, {nan, -3, nan, -2})), (std::vector{3, 1}));
  EXPECT_EQ(experts_of(choices_of(traits, {nan, -INFINITY, nan, -2})), (std::vector{3, 0}));
  EXPECT_EQ(experts_of(choices_of(traits, {nan, nan, nan, nan})), (std::vector{0, 1}));
}

TEST(ChooseExperts, WeightsFollowTheirRule) {
  const std::vector<float> outputs = {0.5F, 3, -1, 2, 2.5F, 0};
  double total = 0, chosen = 0;
  for (const float output : outputs) total += std::exp(output);
  for (const size_t expert : {1, 4, 3}) chosen += std::exp(outputs[expert]);
  const auto expect = [&](RouterWeights rule, auto weight_of) {
    for (const ExpertChoice& choice : choices_of({.count = 6, .used = 3, .weights = rule}, outputs)) {
      const double output = outputs[static_cast<size_t>(choice.expert)];
      EXPECT_NEAR(choice.weight, weight_of(output), 1e-6) << choice.expert;
    }
  };
  expect(RouterWeights::kSoftmax, [&](double output) { return std::exp(output) / total; });
  expect(RouterWeights::kSoftmaxOfChosen, [&](double output) { return std::exp(output) / chosen; });
  expect(RouterWeights::kSigmoid, [&](double output) { return 1 / (1 + std::exp(-output)); });
}

TEST(ChooseExperts, ABiasChangesTheChoiceButNoWeight) {
  const ExpertTraits traits{
      .count = 4, .used = 2, .weights = RouterWeights::kSigmoidOfChosen, .scale = 2.5, .choice_bias = true};
  const auto choices = choices_of(traits, {3, 2, -1, 0}, {0, 0, 1, 0.9F});
  EXPECT_EQ(experts_of(choices), (std::vector{3, 2}));  // 0.5 + 0.9 and 0.27 + 1 against 0.95 and 0.88
  const double first = 0.5, second = 1 / (1 + std::exp(1.0));
  EXPECT_NEAR(choices[0].weight, 2.5 * first / (first + second), 1e-6);
  EXPECT_NEAR(choices[1].weight, 2.5 * second / (first + second), 1e-6);
}

TEST(ChooseExperts, OnlyExpertsOfTheBestGroupsAreTaken) {
  ExpertTraits traits{.count = 8, .used = 3, .groups = 4, .used_groups = 2};
  EXPECT_EQ(experts_of(choices_of(traits, {9, -3, 3, 2.5F, 2, 3, 0, 0})), (std::vector{0, 2, 3}));
  EXPECT_EQ(experts_of(choices_of(traits, {9, -9, 3, 2.5F, 2, 3, 0, 0})), (std::vector{2, 5, 3}));
  traits.used = 4;
  EXPECT_EQ(experts_of(choices_of(traits, {1, 1, 1, 1, 1, 1, 1, 1})), (std::vector{0, 1, 2, 3}));
}

TEST(ChooseExperts, LargeOutputsDoNotOverflow) {
  for (const RouterWeights rule : {RouterWeights::kSoftmax, RouterWeights::kSoftmaxOfChosen}) {
    const auto choices = choices_of({.count = 3, .used = 2, .weights = rule}, {3000, -3000, 3000});
    EXPECT_EQ(choices[0].weight, 0.5F);
    EXPECT_EQ(choices[1].weight, 0.5F);
  }
}

// Every choice has its own place among the places of its expert, in the order of the rows.
TEST(ExpertGroups, PlacesAreSortedByExpertThenByRow) {
  std::mt19937 random(1);
  ExpertGroups groups;
  for (int turn = 0; turn < 200; ++turn) {
    const int64_t experts = 1 + random() % 9;
    const int64_t used = 1 + random() % static_cast<uint32_t>(experts);
    const int64_t rows = 1 + random() % 12;
    std::vector<ExpertChoice> choices;
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<int32_t> order(static_cast<size_t>(experts));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      for (int64_t i = 0; i < used; ++i) choices.push_back({.expert = order[static_cast<size_t>(i)]});
    }
    groups.sort(choices, used, experts);
    std::vector<std::pair<int32_t, int32_t>> expected;  // expert and row of every place
    for (size_t i = 0; i < choices.size(); ++i)
      expected.emplace_back(choices[i].expert, static_cast<int32_t>(i / static_cast<size_t>(used)));
    std::sort(expected.begin(), expected.end());
    size_t place = 0;
    int32_t last = -1;
    for (const ExpertGroups::Group& group : groups.groups()) {
      ASSERT_GT(group.expert, last);
      ASSERT_EQ(group.begin, static_cast<int64_t>(place));
      ASSERT_GT(group.rows, 0);
      last = group.expert;
      for (int64_t i = 0; i < group.rows; ++i, ++place)
        ASSERT_EQ(std::pair(group.expert, groups.row_of_place()[place]), expected[place]);
    }
    ASSERT_EQ(place, choices.size());
    for (size_t i = 0; i < choices.size(); ++i)
      ASSERT_EQ(groups.row_of_place()[static_cast<size_t>(groups.place_of_choice()[i])],
                static_cast<int32_t>(i / static_cast<size_t>(used)));
  }
}

}  // namespace
}  // namespace outrider
