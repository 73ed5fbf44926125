// SPDX-License-Identifier: Apache-2.0
// Block verification keeps as much of a chain as its publication (2403.10444) promises, never less than the
// rejection rule in expectation, and enumeration finds the mistakes that are easily made in it. The mistakes
// are planted in a second implementation, which follows the publication's pseudo-code.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sampling/distribution.h"
#include "speculation/acceptance/exact_distribution_test.h"

namespace outrider {
namespace {

constexpr double kRounding = 1e-12;

// Drafted tokens that the first step accepts, in expectation.
double expected_acceptance(Scenario scenario, AcceptanceRule rule) {
  size_t accepted = 0;
  SpeculativeSystem system;
  system.verify = [&](const VerifyArgs& args, Verdict& verdict) {
    verify(args, verdict);
    accepted = verdict.path.size() - 1;
  };
  scenario.rule = rule;
  scenario.steps = 1;
  ToyGeneration generation(scenario, system);
  ForkingRandomness randomness;
  double sum = 0.0;
  while (randomness.next()) {
    generation.run(randomness);
    sum += randomness.weight() * static_cast<double>(accepted);
  }
  return sum;
}

Scenario toy_scenario(int vocabulary, uint64_t seed, TreeShape shape, int length) {
  Scenario scenario;
  scenario.target = {vocabulary, seed, {}, 0, 0.0};
  scenario.target.params.temperature = 1.0;
  scenario.draft = {vocabulary, seed, scenario.target.params, seed + 1000, 0.6};
  scenario.shape = std::move(shape);
  scenario.length = length;
  return scenario;
}

TreeShape chain_of(int drafted) { return uniform_shape(std::vector<int>(static_cast<size_t>(drafted), 1)); }

TEST(BlockRule, AcceptsNeverLessThanTheRejectionRule) {
  int longer = 0;
  for (int drafted = 1; drafted <= 4; ++drafted) {
    for (const TreeShape& shape : all_shapes(drafted)) {
      for (const Drafting drafting : {Drafting::kSampled, Drafting::kLikeliest, Drafting::kAlternating}) {
        for (uint64_t seed = 0; seed < 3; ++seed) {
          Scenario scenario = toy_scenario(3, seed, shape, drafted + 1);
          scenario.drafting = drafting;
          const double block = expected_acceptance(scenario, AcceptanceRule::kBlock);
          const double rejection = expected_acceptance(scenario, AcceptanceRule::kRejection);
          ASSERT_GE(block, rejection - kRounding) << drafted << " nodes, seed " << seed;
          longer += block > rejection + 1e-3 ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(longer, 20);
}

// The sum over i of the expected reach(i), which no valid verification of a chain exceeds.
double optimal_acceptance(ToyModel& target, ToyModel& draft, Prefix& path, double reach, int levels) {
  if (levels == 0) return 0.0;
  const Distribution p = target.distribution(path);
  const Distribution q = draft.distribution(path);
  double sum = 0.0;
  for (size_t i = 0; i < q.tokens.size(); ++i) {
    const double next = std::min(1.0, reach * probability(p, q.tokens[i]) / q.probabilities[i]);
    path.push_back(q.tokens[i]);
    sum += q.probabilities[i] * (next + optimal_acceptance(target, draft, path, next, levels - 1));
    path.pop_back();
  }
  return sum;
}

TEST(BlockRule, AcceptsAsMuchOfAChainAsIsPossible) {
  for (int drafted = 1; drafted <= 4; ++drafted) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const Scenario scenario = toy_scenario(drafted < 4 ? 4 : 3, seed, chain_of(drafted), drafted + 1);
      ToyModel target(scenario.target);
      ToyModel draft(scenario.draft);
      Prefix path;
      EXPECT_NEAR(expected_acceptance(scenario, AcceptanceRule::kBlock),
                  optimal_acceptance(target, draft, path, 1.0, drafted), kRounding)
          << drafted << " nodes, seed " << seed;
    }
  }
}

// Two drafts of a model that has the target's two probabilities the wrong way round.
double acceptance_in_the_example(AcceptanceRule rule) {
  const Distribution target{{0, 1}, {1.0 / 3, 2.0 / 3}};
  const Distribution draft{{0, 1}, {2.0 / 3, 1.0 / 3}};
  ForkingRandomness randomness;
  Verdict verdict;
  double sum = 0.0;
  while (randomness.next()) {
    TokenTree tree;
    for (int node = 0; node < 2; ++node) {
      propose({.tree = &tree,
               .node = node,
               .distribution = &draft,
               .count = 1,
               .position = node,
               .rule = rule,
               .randomness = &randomness});
    }
    verify({.tree = &tree,
            .target_distribution = [&](int) -> const Distribution& { return target; },
            .rule = rule,
            .randomness = &randomness},
           verdict);
    sum += randomness.weight() * static_cast<double>(verdict.path.size() - 1);
  }
  return sum;
}

TEST(BlockRule, AcceptsElevenNinthsInTheExampleOfItsPublication) {
  EXPECT_NEAR(acceptance_in_the_example(AcceptanceRule::kRejection), 10.0 / 9, kRounding);
  EXPECT_NEAR(acceptance_in_the_example(AcceptanceRule::kBlock), 11.0 / 9, kRounding);
}

enum class BlockBug {
  kNone,
  kReachOfEveryTokenAlone,   // reach(i) without reach(i - 1)
  kReachAboveOne,            // reach(i) is not limited to 1
  kInvertedRatio,            // q / p
  kPlainRemainder,           // max(0, p - q) after a kept part
  kRemainderFromTarget,      // p itself after a kept part
  kRemainderOneRowUp,        // the remainder at the node before the last kept one
  kMiddleKeptWithReach,      // nodes before the last are kept with reach(i)
  kMiddleKeptWithoutReach,   // R / (R + 1)
  kMiddleKeptWithRemainder,  // R
  kLastKeptWithRatio,        // the last node is kept with min(1, p / q)
  kStopsAtTheFirstNotKept,   // later nodes are not looked at
  kStepsShareAcceptDraws,    // draws at one position have one number in all steps
  kStepsShareDrafts,         // drafts at one position are drawn with one number in all steps
};

constexpr std::pair<BlockBug, const char*> kBlockBugs[] = {
    {BlockBug::kReachOfEveryTokenAlone, "ReachOfEveryTokenAlone"},
    {BlockBug::kReachAboveOne, "ReachAboveOne"},
    {BlockBug::kInvertedRatio, "InvertedRatio"},
    {BlockBug::kPlainRemainder, "PlainRemainder"},
    {BlockBug::kRemainderFromTarget, "RemainderFromTarget"},
    {BlockBug::kRemainderOneRowUp, "RemainderOneRowUp"},
    {BlockBug::kMiddleKeptWithReach, "MiddleKeptWithReach"},
    {BlockBug::kMiddleKeptWithoutReach, "MiddleKeptWithoutReach"},
    {BlockBug::kMiddleKeptWithRemainder, "MiddleKeptWithRemainder"},
    {BlockBug::kLastKeptWithRatio, "LastKeptWithRatio"},
    {BlockBug::kStopsAtTheFirstNotKept, "StopsAtTheFirstNotKept"},
    {BlockBug::kStepsShareAcceptDraws, "StepsShareAcceptDraws"},
    {BlockBug::kStepsShareDrafts, "StepsShareDrafts"},
};

// Verifies a chain of drawn tokens.
class SecondVerifier {
 public:
  SecondVerifier(BlockBug bug, const VerifyArgs& args) : bug_(bug), args_(args), tree_(*args.tree) {}

  std::vector<TokenId> run() {
    const int drafted = tree_.drafted();
    for (int node = 0; node <= drafted; ++node) p_.push_back(args_.target_distribution(node));
    reach_.assign(1, 1.0);
    for (int node = 1; node <= drafted; ++node) reach_.push_back(reach_of(node));
    int kept = 0;
    for (int node = 1; node <= drafted; ++node) {
      const bool passes =
          args_.randomness->bernoulli(keep_probability(node), args_.position + node - 1, draw_number(node));
      if (passes) kept = node;
      if (!passes && bug_ == BlockBug::kStopsAtTheFirstNotKept) break;
    }
    std::vector<TokenId> tokens(tree_.tokens().begin() + 1, tree_.tokens().begin() + 1 + kept);
    tokens.push_back(kept == drafted ? draw(p_.back(), kept, RandomPurpose::kToken)
                                     : draw(remainder_after(kept), kept, RandomPurpose::kResidual));
    return tokens;
  }

 private:
  uint64_t draw_number(int node) const {
    return bug_ == BlockBug::kStepsShareAcceptDraws ? 0 : static_cast<uint64_t>(node);
  }

  double ratio(int node) const {
    const double p = probability(p_[static_cast<size_t>(node) - 1], tree_.token(node));
    const double q = probability(tree_.distribution(node - 1), tree_.token(node));
    return bug_ == BlockBug::kInvertedRatio ? q / p : p / q;
  }

  double reach_of(int node) const {
    const double before = bug_ == BlockBug::kReachOfEveryTokenAlone ? 1.0 : reach_.back();
    const double reach = before * ratio(node);
    return bug_ == BlockBug::kReachAboveOne ? reach : std::min(1.0, reach);
  }

  Distribution remainder(int node, double reach) const {
    Distribution rest = p_[static_cast<size_t>(node)];
    for (size_t i = 0; i < rest.tokens.size(); ++i) {
      const double q = probability(tree_.distribution(node), rest.tokens[i]);
      rest.probabilities[i] = std::max(0.0, reach * rest.probabilities[i] - q);
    }
    return rest;
  }

  Distribution remainder_after(int kept) const {
    const Distribution& p = p_[static_cast<size_t>(kept)];
    if (bug_ == BlockBug::kRemainderFromTarget) return p;
    const int node = bug_ == BlockBug::kRemainderOneRowUp ? std::max(0, kept - 1) : kept;
    const double reach = bug_ == BlockBug::kPlainRemainder ? 1.0 : reach_[static_cast<size_t>(node)];
    const Distribution rest = remainder(node, reach);
    return mass(rest) > 0.0 ? rest : p;
  }

  static double mass(const Distribution& distribution) {
    double sum = 0.0;
    for (const double probability : distribution.probabilities) sum += probability;
    return sum;
  }

  double keep_probability(int node) const {
    const double reach = reach_[static_cast<size_t>(node)];
    if (node == tree_.drafted()) return bug_ == BlockBug::kLastKeptWithRatio ? ratio(node) : reach;
    if (bug_ == BlockBug::kMiddleKeptWithReach) return reach;
    const double left = mass(remainder(node, reach));
    if (bug_ == BlockBug::kMiddleKeptWithRemainder) return left;
    if (bug_ == BlockBug::kMiddleKeptWithoutReach) return left / (left + 1.0);
    return left > 0.0 ? left / (left + 1.0 - reach) : 0.0;
  }

  TokenId draw(const Distribution& distribution, int kept, RandomPurpose purpose) {
    return distribution
        .tokens[args_.randomness->categorical(distribution.probabilities, args_.position + kept, purpose, 0)];
  }

  BlockBug bug_;
  const VerifyArgs& args_;
  const TokenTree& tree_;
  std::vector<Distribution> p_;  // by node
  std::vector<double> reach_;    // by node
};

SpeculativeSystem second_system(BlockBug bug) {
  SpeculativeSystem system;
  system.drafters_share_draws = bug == BlockBug::kStepsShareDrafts;
  system.verify = [bug](const VerifyArgs& args, Verdict& verdict) {
    verdict.clear();
    verdict.tokens = SecondVerifier(bug, args).run();
  };
  return system;
}

// The total variation of the first scenario that shows a bug, else the largest of all scenarios.
double largest_variation(const SpeculativeSystem& system, double found) {
  double largest = 0.0;
  for (int drafted = 1; drafted <= 3; ++drafted) {
    for (uint64_t seed = 0; seed < 4 && largest <= found; ++seed) {
      Scenario scenario = toy_scenario(drafted < 3 ? 3 : 2, seed, chain_of(drafted), drafted + 1);
      scenario.rule = AcceptanceRule::kBlock;
      largest = std::max(largest, compare_with_target(scenario, system).total_variation);
    }
  }
  return largest;
}

class PlantedBlockBug : public testing::TestWithParam<std::pair<BlockBug, const char*>> {};

TEST_P(PlantedBlockBug, IsFound) {
  constexpr double kFound = 1e-6;
  EXPECT_GT(largest_variation(second_system(GetParam().first), kFound), kFound);
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBlockBug, testing::ValuesIn(kBlockBugs),
                         [](const auto& bug) { return std::string(bug.param.second); });

TEST(PlantedBlockBlockBugs, WithoutABugTheSameScenariosAreExact) {
  EXPECT_LE(largest_variation(SpeculativeSystem{}, 1.0), kRounding);
  EXPECT_LE(largest_variation(second_system(BlockBug::kNone), 1.0), kRounding);
}

}  // namespace
}  // namespace outrider
