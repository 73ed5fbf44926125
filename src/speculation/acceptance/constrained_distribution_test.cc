// SPDX-License-Identifier: Apache-2.0
// Under a constraint the output has the target's masked distribution, as exact enumeration shows: for drafts
// drawn with the mask, drawn without it, and chosen and then cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/counter_rng.h"
#include "speculation/acceptance/exact_distribution_fixture.h"

namespace outrider {
namespace {

constexpr AcceptanceRule kRules[] = {AcceptanceRule::kRejection, AcceptanceRule::kBlock,
                                     AcceptanceRule::kCoupled};

// Allows about half of the tokens after each prefix, and at least one.
Language random_language(int vocabulary, uint64_t seed) {
  return [=](const Prefix& prefix, TokenId token) {
    uint64_t hash = seed;
    for (const TokenId one : prefix) hash = mix64(hash ^ static_cast<uint64_t>(one + 1));
    const bool is_sure = mix64(hash) % static_cast<uint64_t>(vocabulary) == static_cast<uint64_t>(token);
    return is_sure || mix64(hash ^ static_cast<uint64_t>(token + 1000)) % 2 == 0;
  };
}

Scenario scenario_of(int vocabulary, uint64_t seed) {
  SamplingParams params;
  params.temperature = 1.0;
  Scenario scenario;
  scenario.target = {vocabulary, seed, params, 0, 0.0, random_language(vocabulary, seed)};
  scenario.draft = {vocabulary, seed, params, seed + 1000, 0.5};
  scenario.length = 3;
  return scenario;
}

// Drops the nodes that the constraint forbids, as the engine does with chosen nodes.
void cut_forbidden_by(const Language& language, int vocabulary, TokenTree& tree) {
  TinyLanguage constraint(language, vocabulary);
  std::vector<TokenConstraint::State> states = {constraint.start()};
  std::vector<uint8_t> kept = {1};
  bool all_stay = true;
  for (int node = 1; node < tree.size(); ++node) {
    const auto parent = static_cast<size_t>(tree.parent(node));
    const bool may_come = kept[parent] != 0;
    states.push_back(may_come ? constraint.advance(states[parent], tree.token(node))
                              : TokenConstraint::kDead);
    kept.push_back(states.back() != TokenConstraint::kDead ? 1 : 0);
    all_stay = all_stay && kept.back() != 0;
  }
  if (!all_stay) tree.keep(kept);
}

class ConstrainedDistribution : public ExactDistributionTest {};

TEST_F(ConstrainedDistribution, IsExactForDraftsDrawnWithAndWithoutTheMask) {
  for (const bool is_masked : {true, false}) {
    for (const ChildrenKind kind : {ChildrenKind::kSampled, ChildrenKind::kIndependent}) {
      for (const AcceptanceRule rule : kRules) {
        for (const TreeShape& shape : all_shapes(3)) {
          for (uint64_t seed = 0; seed < 4; ++seed) {
            Scenario scenario = scenario_of(4, seed);
            if (is_masked) scenario.draft.language = scenario.target.language;
            scenario.kind = kind;
            scenario.rule = rule;
            scenario.shape = shape;
            ASSERT_NO_FATAL_FAILURE(expect_lossless(scenario));
          }
        }
      }
    }
  }
}

TEST_F(ConstrainedDistribution, IsExactForTreesGrownUnderTheMask) {
  for (const TreeKind kind : {TreeKind::kChain, TreeKind::kStatic, TreeKind::kDynamic}) {
    SpeculativeOptions options;
    options.tree.kind = kind;
    options.max_draft_len = 2;
    options.tree.expansion = {2, 1};
    options.tree.dynamic_tree_max_top_k = 2;
    const auto policy = make_tree_policy(options);
    for (const ChildrenChoice children :
         {ChildrenChoice::kSampled, ChildrenChoice::kTop, ChildrenChoice::kIndependent}) {
      for (uint64_t seed = 0; seed < 6; ++seed) {
        Scenario scenario = scenario_of(4, seed);
        scenario.draft.language = scenario.target.language;
        scenario.growth = {
            .options = {.policy = policy.get(), .children = children}, .max_draft_len = 2, .max_nodes = 4};
        scenario.steps = 1;
        ASSERT_NO_FATAL_FAILURE(expect_lossless(scenario));
        // The constraint allows every node that grew.
        scenario.prune = [&](TokenTree& tree) {
          const int size = tree.size();
          cut_forbidden_by(scenario.target.language, 4, tree);
          EXPECT_EQ(tree.size(), size);
        };
        ASSERT_NO_FATAL_FAILURE(expect_lossless(scenario));
      }
    }
  }
}

// Cuts forbidden nodes in the first step only, since cut_forbidden_by() starts at the constraint's first
// state.
Scenario one_step_cut(int vocabulary, uint64_t seed) {
  Scenario scenario = scenario_of(vocabulary, seed);
  scenario.steps = 1;
  scenario.prune = [=, language = scenario.target.language](TokenTree& tree) {
    cut_forbidden_by(language, vocabulary, tree);
  };
  return scenario;
}

TEST_F(ConstrainedDistribution, IsExactForChosenDraftsThatAreCut) {
  for (const Drafting drafting : {Drafting::kFixed, Drafting::kLikeliest}) {
    for (const AcceptanceRule rule : kRules) {
      for (const TreeShape& shape : all_shapes(3)) {
        for (uint64_t seed = 0; seed < 4; ++seed) {
          Scenario scenario = one_step_cut(4, seed);
          scenario.drafting = drafting;
          scenario.rule = rule;
          scenario.shape = shape;
          ASSERT_NO_FATAL_FAILURE(expect_lossless(scenario));
        }
      }
    }
  }
}

// Drawn nodes must not be cut: which ones remain would depend on the draws.
TEST_F(ConstrainedDistribution, IsBiasedIfDrawnDraftsAreCut) {
  double largest = 0.0;
  const int widths[] = {2};
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Scenario scenario = one_step_cut(4, seed);
    scenario.shape = uniform_shape(widths);
    largest = std::max(largest, compare_with_target(scenario).total_variation);
  }
  EXPECT_GT(largest, 1e-3);
}

}  // namespace
}  // namespace outrider
