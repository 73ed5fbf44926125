// SPDX-License-Identifier: Apache-2.0
// Tests drafting and verification with the real, seeded randomness, which exact enumeration cannot cover.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "speculation/acceptance/exact_distribution_test.h"

namespace outrider {
namespace {

constexpr Drafting kDraftings[] = {Drafting::kSampled, Drafting::kLikeliest, Drafting::kFixed,
                                   Drafting::kAlternating};

const std::vector<std::vector<int>> kWidths = {{1}, {1, 1, 1, 1}, {4}, {3, 2}, {2, 2, 1}};

Scenario scenario_of(const SamplingParams& params, int vocabulary, int length) {
  Scenario scenario;
  scenario.target = {vocabulary, 3, params, 0, 0.0};
  scenario.draft = {vocabulary, 3, params, 4, 0.3};
  scenario.length = length;
  return scenario;
}

SamplingParams sampling(double temperature, double top_p) {
  SamplingParams params;
  params.temperature = temperature;
  params.top_p = top_p;
  params.frequency_penalty = 0.3;
  return params;
}

// Decodes one token at a time, without trees.
Prefix plain_coupled_output(const Scenario& scenario, uint64_t seed) {
  ToyModel target(scenario.target);
  CounterRandomness randomness(seed, 0);
  Prefix output;
  while (static_cast<int>(output.size()) < scenario.length) {
    const int64_t position = kToyPromptLength + static_cast<int64_t>(output.size());
    output.push_back(randomness.coupled_pick(target.distribution(output), position));
  }
  return output;
}

Prefix output_of(const Scenario& scenario, uint64_t seed) {
  const SpeculativeSystem system;
  CounterRandomness randomness(seed, 0);
  return ToyGeneration(scenario, system).run(randomness);
}

TEST(CoupledOutput, IsTheSameWhateverWasDrafted) {
  for (const SamplingParams& params : {sampling(0.7, 0.9), sampling(1.5, 1.0)}) {
    Scenario scenario = scenario_of(params, 20, 24);
    scenario.rule = AcceptanceRule::kCoupled;
    for (uint64_t seed = 0; seed < 25; ++seed) {
      const Prefix expected = plain_coupled_output(scenario, seed);
      for (const std::vector<int>& widths : kWidths) {
        for (const Drafting drafting : kDraftings) {
          scenario.shape = uniform_shape(widths);
          scenario.drafting = drafting;
          ASSERT_EQ(output_of(scenario, seed), expected) << "seed " << seed;
        }
      }
    }
  }
}

// Trees have a random topology; half of their tokens are the target's own.
TEST(CoupledOutput, FollowsThePicksDownAnyTree) {
  std::mt19937 engine(8);
  const auto below = [&](int end) { return std::uniform_int_distribution<int>(0, end - 1)(engine); };
  const Scenario scenario = scenario_of(sampling(1.0, 1.0), 6, 12);
  ToyModel target(scenario.target);
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Prefix plain = plain_coupled_output(scenario, seed);
    TokenTree tree;
    for (int added = below(12); added > 0; --added) {
      const int parent = below(tree.size());
      const TokenId own = plain[static_cast<size_t>(tree.depth(parent))];
      tree.add(parent, below(2) == 0 && tree.depth(parent) < 10 ? own : below(6));
    }
    Distribution distribution;
    const auto target_distribution = [&](int node) -> const Distribution& {
      Prefix prefix;
      for (int at = node; at != 0; at = tree.parent(at)) prefix.insert(prefix.begin(), tree.token(at));
      distribution = target.distribution(prefix);
      return distribution;
    };
    CounterRandomness randomness(seed, 0);
    Verdict verdict;
    verify({&tree, target_distribution, kToyPromptLength, AcceptanceRule::kCoupled, &randomness}, verdict);
    ASSERT_LE(verdict.tokens.size(), plain.size());
    ASSERT_TRUE(std::equal(verdict.tokens.begin(), verdict.tokens.end(), plain.begin())) << "seed " << seed;
    const int last = verdict.path.back();
    for (int child = last + 1; child < tree.size(); ++child) {
      ASSERT_FALSE(tree.parent(child) == last && tree.token(child) == verdict.tokens.back())
          << "seed " << seed;
    }
  }
}

TEST(GreedyOutput, IsTheSameUnderBothRulesForAnySeedAndDraft) {
  Scenario scenario = scenario_of(sampling(0.0, 1.0), 20, 24);
  const Prefix expected = plain_coupled_output(scenario, 0);
  for (const AcceptanceRule rule : {AcceptanceRule::kCoupled, AcceptanceRule::kRejection}) {
    for (const double draft_temperature : {0.0, 1.0}) {
      for (const std::vector<int>& widths : kWidths) {
        for (const Drafting drafting : kDraftings) {
          scenario.rule = rule;
          scenario.draft.params.temperature = draft_temperature;
          scenario.shape = uniform_shape(widths);
          scenario.drafting = drafting;
          for (uint64_t seed = 0; seed < 5; ++seed) ASSERT_EQ(output_of(scenario, seed), expected);
        }
      }
    }
  }
}

TEST(RejectionOutput, IsRepeatableAndDependsOnTheSeed) {
  Scenario scenario = scenario_of(sampling(1.0, 1.0), 20, 24);
  scenario.shape = uniform_shape(kWidths[3]);
  EXPECT_EQ(output_of(scenario, 1), output_of(scenario, 1));
  EXPECT_NE(output_of(scenario, 1), output_of(scenario, 2));
}

// With 1e5 runs the test finds a total variation of 0.02 in 64 cells with power 99.9 %; its false alarm rate
// is 1e-9.
constexpr int kRuns = 100000;
constexpr double kCritical63 = 155.1;

double chi_square(const std::map<Prefix, int>& observed, const std::map<Prefix, double>& distribution) {
  double sum = 0.0;
  for (const auto& [output, probability] : distribution) {
    const auto found = observed.find(output);
    const double count = found == observed.end() ? 0.0 : found->second;
    const double expected = kRuns * probability;
    sum += (count - expected) * (count - expected) / expected;
  }
  return sum;
}

// Moves a total variation of 0.02 from the likeliest output to the first one.
std::map<Prefix, double> shifted(std::map<Prefix, double> distribution) {
  distribution.begin()->second += 0.02;
  std::max_element(distribution.begin(), distribution.end(), [](const auto& a, const auto& b) {
    return a.second < b.second;
  })->second -= 0.02;
  return distribution;
}

std::map<Prefix, int> outputs_of(ToyGeneration& generation) {
  std::map<Prefix, int> observed;
  for (uint64_t seed = 0; seed < kRuns; ++seed) {
    CounterRandomness randomness(seed, 0);
    ++observed[generation.run(randomness)];
  }
  return observed;
}

Scenario three_of_four_letters() {
  SamplingParams params;
  params.temperature = 1.5;
  return scenario_of(params, 4, 3);
}

// Growth, merging and acceptance share one seed: two drafters grow trees by a policy.
TEST(SeededDistribution, FitsTheTargetOnGrownAndSharedTrees) {
  const StaticTreePolicy wide({3, 2});
  const DynamicTreePolicy dynamic(2);
  for (const TreePolicy* policy :
       {static_cast<const TreePolicy*>(&wide), static_cast<const TreePolicy*>(&dynamic)}) {
    for (const ChildrenChoice children : {ChildrenChoice::kSampled, ChildrenChoice::kIndependent}) {
      Scenario scenario = three_of_four_letters();
      scenario.growth = {{.policy = policy, .children = children}, 2, 5};
      scenario.others.push_back(scenario);
      scenario.others[0].draft.other_seed = 9;
      const SpeculativeSystem system;
      ToyGeneration generation(scenario, system);
      std::map<Prefix, double> distribution;
      generation.add_continuations({}, 1.0, distribution);
      const std::map<Prefix, int> observed = outputs_of(generation);
      EXPECT_LT(chi_square(observed, distribution), kCritical63);
      EXPECT_GT(chi_square(observed, shifted(distribution)), kCritical63)
          << "the control distribution was not told apart";
    }
  }
}

TEST(SeededDistribution, FitsTheTargetUnderBothRules) {
  Scenario scenario = three_of_four_letters();
  const int widths[] = {2, 1};
  scenario.shape = uniform_shape(widths);
  const SpeculativeSystem system;
  ToyGeneration generation(scenario, system);
  std::map<Prefix, double> distribution;
  generation.add_continuations({}, 1.0, distribution);
  ASSERT_EQ(distribution.size(), 64u);
  for (const AcceptanceRule rule : {AcceptanceRule::kRejection, AcceptanceRule::kCoupled}) {
    scenario.rule = rule;
    const std::map<Prefix, int> observed = outputs_of(generation);
    EXPECT_LT(chi_square(observed, distribution), kCritical63);
    EXPECT_GT(chi_square(observed, shifted(distribution)), kCritical63)
        << "the control distribution was not told apart";
  }
}

TEST(SeededDistribution, ADrafterThatDrawsFromAnotherDistributionIsNoticed) {
  Scenario scenario = three_of_four_letters();
  const int widths[] = {2, 1};
  scenario.shape = uniform_shape(widths);
  scenario.corrupt = [](Distribution& distribution) {
    std::reverse(distribution.probabilities.begin(), distribution.probabilities.end());
  };
  const SpeculativeSystem system;
  ToyGeneration generation(scenario, system);
  std::map<Prefix, double> distribution;
  generation.add_continuations({}, 1.0, distribution);
  EXPECT_GT(chi_square(outputs_of(generation), distribution), kCritical63);
}

}  // namespace
}  // namespace outrider
