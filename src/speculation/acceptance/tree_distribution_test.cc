// SPDX-License-Identifier: Apache-2.0
// Under the rejection and the block rule the output has the target's distribution. This holds for every
// topology of small trees, for one drafter and for several that share a tree, for all kinds of proposals, and
// for the trees that TreeGrowth grows.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "speculation/acceptance/exact_distribution_fixture.h"

namespace outrider {
namespace {

constexpr double kFound = 1e-6;

// How children are proposed.
struct Provenance {
  Drafting drafting = Drafting::kSampled;
  ChildrenKind kind = ChildrenKind::kSampled;
};
constexpr Provenance kWithoutReplacement{Drafting::kSampled, ChildrenKind::kSampled};
constexpr Provenance kIndependent{Drafting::kSampled, ChildrenKind::kIndependent};
constexpr Provenance kLikeliest{Drafting::kLikeliest};
constexpr Provenance kFixed{Drafting::kFixed};
constexpr Provenance kMixed{Drafting::kAlternating, ChildrenKind::kSampled};
constexpr Provenance kMixedIndependent{Drafting::kAlternating, ChildrenKind::kIndependent};

ToyDrafter drafter_of(int vocabulary, uint64_t seed, const TreeShape& shape, const Provenance& provenance) {
  SamplingParams params;
  params.temperature = 1.0;
  ToyDrafter drafter;
  drafter.draft = {vocabulary, 1, params, seed, 0.5};
  drafter.shape = shape;
  drafter.drafting = provenance.drafting;
  drafter.kind = provenance.kind;
  return drafter;
}

int depth_of(const TreeShape& shape) {
  int depth = 0;
  for (const TreeShape& child : shape.children) depth = std::max(depth, 1 + depth_of(child));
  return depth;
}

// One step with drafts that emits one token beyond the deepest node, so that the bonus token is compared too.
Scenario one_step_of(int vocabulary, std::vector<ToyDrafter> drafters) {
  Scenario scenario;
  scenario.target = {vocabulary, 1, drafters[0].draft.params, 0, 0.0};
  scenario.steps = 1;
  for (const ToyDrafter& drafter : drafters) {
    const int depth = drafter.growth ? drafter.growth->max_draft_len : depth_of(drafter.shape);
    scenario.length = std::max(scenario.length, depth + 1);
  }
  static_cast<ToyDrafter&>(scenario) = drafters[0];
  scenario.others.assign(drafters.begin() + 1, drafters.end());
  return scenario;
}

class TreeDistribution : public ExactDistributionTest {
 protected:
  void expect_lossless(Scenario scenario) {
    for (const AcceptanceRule rule : {AcceptanceRule::kRejection, AcceptanceRule::kBlock}) {
      scenario.rule = rule;
      ASSERT_NO_FATAL_FAILURE(ExactDistributionTest::expect_lossless(scenario));
    }
  }
};

struct Size {
  int drafted;
  int vocabulary;
  size_t stride = 1;  // every stride-th topology is tested
};

// Covers all topologies; for the largest trees and vocabularies each provenance gets a subset.
TEST_F(TreeDistribution, EveryTopologyAndProvenance) {
  for (const Size& size : {Size{1, 5},
                           {2, 5},
                           {3, 5},
                           {4, 5},
                           {5, 3},
                           {5, 4},
                           {5, 5, 6},
                           {6, 2},
                           {6, 3},
                           {6, 4, 12},
                           {6, 5, 66}}) {
    const std::vector<TreeShape> shapes = all_shapes(size.drafted);
    size_t offset = 0;
    for (const Provenance& provenance :
         {kWithoutReplacement, kIndependent, kLikeliest, kMixed, kMixedIndependent}) {
      for (size_t i = offset++ % size.stride; i < shapes.size(); i += size.stride) {
        const auto seed = static_cast<uint64_t>(100 + scenarios_);
        ASSERT_NO_FATAL_FAILURE(expect_lossless(
            one_step_of(size.vocabulary, {drafter_of(size.vocabulary, seed, shapes[i], provenance)})));
      }
    }
  }
}

TEST_F(TreeDistribution, EveryPairOfTopologiesThatShareATree) {
  const std::pair<Provenance, Provenance> pairs[] = {{kWithoutReplacement, kWithoutReplacement},
                                                     {kWithoutReplacement, kFixed},
                                                     {kLikeliest, kWithoutReplacement},
                                                     {kIndependent, kWithoutReplacement},
                                                     {kIndependent, kIndependent},
                                                     {kMixed, kMixedIndependent}};
  struct Split {
    int first;
    int second;
    int vocabulary;
  };
  for (const Split& split : {Split{1, 1, 5},
                             {2, 1, 4},
                             {1, 2, 4},
                             {2, 2, 4},
                             {1, 3, 3},
                             {3, 1, 3},
                             {3, 3, 2},
                             {2, 4, 2},
                             {4, 2, 2},
                             {3, 3, 3},
                             {1, 5, 3},
                             {5, 1, 3}}) {
    for (const TreeShape& first : all_shapes(split.first)) {
      for (const TreeShape& second : all_shapes(split.second)) {
        for (const auto& [of_first, of_second] : pairs) {
          const auto seed = static_cast<uint64_t>(100 + scenarios_);
          ASSERT_NO_FATAL_FAILURE(expect_lossless(
              one_step_of(split.vocabulary, {drafter_of(split.vocabulary, seed, first, of_first),
                                             drafter_of(split.vocabulary, seed + 9999, second, of_second)})));
        }
      }
    }
  }
}

TEST_F(TreeDistribution, ThreeDraftersThatShareATree) {
  for (const Size& size : {Size{1, 4}, {2, 2}}) {
    for (const TreeShape& first : all_shapes(size.drafted)) {
      for (const TreeShape& second : all_shapes(size.drafted)) {
        for (const TreeShape& third : all_shapes(size.drafted)) {
          for (const Provenance& last : {kWithoutReplacement, kIndependent, kFixed}) {
            const auto seed = static_cast<uint64_t>(100 + scenarios_);
            const int v = size.vocabulary;
            ASSERT_NO_FATAL_FAILURE(
                expect_lossless(one_step_of(v, {drafter_of(v, seed, first, kWithoutReplacement),
                                                drafter_of(v, seed + 9999, second, kIndependent),
                                                drafter_of(v, seed + 99999, third, last)})));
          }
        }
      }
    }
  }
}

// Later steps draft at positions where earlier steps drafted.
TEST_F(TreeDistribution, SharedTreesOverSeveralSteps) {
  const int widths[] = {2, 1};
  const TreeShape shape = uniform_shape(widths);
  for (const Provenance& second : {kWithoutReplacement, kIndependent, kFixed}) {
    Scenario scenario =
        one_step_of(2, {drafter_of(2, 7, shape, kWithoutReplacement), drafter_of(2, 8, shape, second)});
    scenario.steps = 0;
    scenario.length = 4;
    ASSERT_NO_FATAL_FAILURE(expect_lossless(scenario));
  }
}

// Drops nodes depending on the tokens drawn.
void keep_low_tokens(TokenTree& tree) {
  std::vector<uint8_t> kept(static_cast<size_t>(tree.size()), 1);
  for (int node = 1; node < tree.size(); ++node)
    kept[static_cast<size_t>(node)] = tree.token(node) < 2 ? 1 : 0;
  tree.keep(kept);
}

TEST_F(TreeDistribution, TreesPrunedByWhatWasDrawn) {
  for (int drafted = 1; drafted <= 3; ++drafted) {
    for (const TreeShape& shape : all_shapes(drafted)) {
      for (const Provenance& provenance : {kWithoutReplacement, kIndependent, kMixed}) {
        Scenario scenario =
            one_step_of(3, {drafter_of(3, 5, shape, provenance), drafter_of(3, 6, shape, kIndependent)});
        scenario.prune = keep_low_tokens;
        ASSERT_NO_FATAL_FAILURE(expect_lossless(scenario));
      }
    }
  }
}

TEST(TreeDistributionControl, PruningOnlyWhereSomethingWouldGoIsNoticed) {
  Scenario scenario = one_step_of(3, {drafter_of(3, 5, all_shapes(1)[0], kWithoutReplacement)});
  scenario.prune = [](TokenTree& tree) {
    if (std::any_of(tree.tokens().begin(), tree.tokens().end(), [](TokenId token) { return token >= 2; }))
      keep_low_tokens(tree);
  };
  EXPECT_GT(compare_with_target(scenario).total_variation, kFound);
}

TEST(TreeDistributionControl, DraftersThatShareDrawsAreNoticed) {
  SpeculativeSystem system;
  system.drafters_share_draws = true;
  const TreeShape one = all_shapes(1)[0];
  double largest = 0.0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Scenario scenario = one_step_of(4, {drafter_of(4, 2 * seed + 5, one, kWithoutReplacement),
                                              drafter_of(4, 2 * seed + 6, one, kWithoutReplacement)});
    largest = std::max(largest, compare_with_target(scenario, system).total_variation);
  }
  EXPECT_GT(largest, kFound);
}

struct Policy {
  TreeKind tree;
  std::vector<int> expansion;  // kStatic
  int max_top_k;               // kDynamic
  int max_draft_len;
};

const std::vector<Policy> kPolicies = {
    {TreeKind::kChain, {}, 0, 3},      {TreeKind::kStatic, {2, 2}, 0, 2},
    {TreeKind::kStatic, {3, 1}, 0, 2}, {TreeKind::kStatic, {1, 2, 1}, 0, 3},
    {TreeKind::kDynamic, {}, 2, 2},    {TreeKind::kDynamic, {}, 2, 3},
    {TreeKind::kDynamic, {}, 3, 2},
};

std::unique_ptr<TreePolicy> policy_of(const Policy& policy) {
  SpeculativeOptions options;
  options.tree.kind = policy.tree;
  options.tree.expansion = policy.expansion;
  options.tree.dynamic_tree_max_top_k = policy.max_top_k;
  options.max_draft_len = policy.max_draft_len;
  return make_tree_policy(options);
}

// With budgets smaller than the policy's tree, the number of children of a node depends on draws at other
// nodes.
TEST_F(TreeDistribution, GrownTreesOfEveryPolicyAndBudget) {
  for (const Policy& policy : kPolicies) {
    const auto made = policy_of(policy);
    for (const ChildrenChoice children :
         {ChildrenChoice::kSampled, ChildrenChoice::kIndependent, ChildrenChoice::kTop}) {
      for (int nodes = 2; nodes <= 6; ++nodes) {
        for (const auto& [min, max] : {std::pair{0.0, 0.0}, {0.4, 0.0}, {0.0, 0.35}}) {
          const int vocabulary = nodes <= 4 ? 4 : 3;
          ToyDrafter drafter =
              drafter_of(vocabulary, static_cast<uint64_t>(50 + nodes), {}, kWithoutReplacement);
          drafter.growth = {{made.get(), children, min, max}, policy.max_draft_len, nodes};
          ASSERT_NO_FATAL_FAILURE(expect_lossless(one_step_of(vocabulary, {drafter})));
        }
      }
    }
  }
}

TEST_F(TreeDistribution, GrownTreesOfTwoDrafters) {
  for (const Policy& policy : kPolicies) {
    const auto made = policy_of(policy);
    for (const ChildrenChoice children : {ChildrenChoice::kSampled, ChildrenChoice::kIndependent}) {
      ToyDrafter first = drafter_of(4, 3, {}, kWithoutReplacement);
      first.growth = {{made.get(), children}, policy.max_draft_len, 2};
      ToyDrafter second = first;
      second.draft.other_seed = 4;
      ASSERT_NO_FATAL_FAILURE(expect_lossless(one_step_of(4, {first, second})));
    }
  }
}

// Lets all nodes of a level draw with the same uniform numbers.
class SharedDraws final : public Randomness {
 public:
  explicit SharedDraws(Randomness& under) : under_(under) {}
  TokenId coupled_pick(const Distribution& distribution, int64_t position) override {
    return under_.coupled_pick(distribution, position);
  }
  std::vector<TokenId> coupled_top(const Distribution& distribution, int64_t position, int count) override {
    return under_.coupled_top(distribution, position, count);
  }
  size_t categorical(std::span<const double> weights, int64_t position, RandomPurpose purpose,
                     uint64_t draw) override {
    return under_.categorical(weights, position, purpose, draw & 0xffff);
  }
  bool bernoulli(double p, int64_t position, uint64_t draw) override {
    return under_.bernoulli(p, position, draw);
  }

 private:
  Randomness& under_;
};

// A repeated draw at the first node leaves room for one more child of the second node.
TEST(TreeDistributionControl, NodesThatShareDrawsUnderABudgetAreNoticed) {
  const auto made = policy_of({TreeKind::kStatic, {2, 2}, 0, 2});
  ToyDrafter drafter = drafter_of(3, 50, {}, kWithoutReplacement);
  drafter.growth = {{made.get(), ChildrenChoice::kIndependent}, 2, 5};
  const Scenario scenario = one_step_of(3, {drafter});
  const SpeculativeSystem system;
  ToyGeneration generation(scenario, system);
  ForkingRandomness forking;
  SharedDraws shared(forking);
  std::map<Prefix, double> excess;
  while (forking.next()) {
    const Prefix output = generation.run(shared);
    generation.add_continuations(output, forking.weight(), excess);
  }
  generation.add_continuations({}, -1.0, excess);
  double total_variation = 0.0;
  for (const auto& [output, weight] : excess) total_variation += 0.5 * std::abs(weight);
  EXPECT_GT(total_variation, kFound);
}

}  // namespace
}  // namespace outrider
