// SPDX-License-Identifier: Apache-2.0
#include "speculation/tree/tree_growth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/counter_rng.h"
#include "speculation/tree/acceptance_estimates.h"

namespace outrider {
namespace {

using testing::ElementsAre;

constexpr int kVocabulary = 6;
using Path = std::vector<TokenId>;

// Logits of a toy draft, a pure function of the tokens after the prompt.
std::vector<float> logits_after(const Path& path) {
  uint64_t state = 1;
  for (const TokenId token : path) state = mix64(state * 31 + static_cast<uint64_t>(token) + 1);
  std::vector<float> logits(kVocabulary);
  for (float& logit : logits) {
    state = mix64(state);
    logit = static_cast<float>(state % 1000) / 200.0f;
  }
  return logits;
}

Path path_to(const TokenTree& tree, int node) {
  Path path;
  for (; node > 0; node = tree.parent(node)) path.insert(path.begin(), tree.token(node));
  return path;
}

using Draft = std::function<std::vector<float>(const Path&)>;

struct Growing {
  SpeculativeOptions options = {};
  SamplingParams sampling = {};
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  int max_draft_len = 4;
  int max_nodes = 16;
  double rate = 0.0;
  double level_ms = 0.0;  // of one node
  double node_ms = 0.0;   // of every other one
  double row_ms = 0.0;
  const AcceptanceEstimates* estimates = nullptr;
  Draft draft = logits_after;
};

TokenTree grow(const Growing& setup) {
  const std::vector<TokenId> prompt = {3, 1};
  TokenTree tree(prompt.back());
  TokenHistory history;
  history.add_prompt(prompt);
  const auto policy = make_tree_policy(setup.options);
  GrowthOptions options = growth_options(setup.options, policy.get());
  if (setup.node_ms > 0.0) options.level_time.learn(9.0, setup.level_ms + 8.0 * setup.node_ms);
  if (setup.level_ms > 0.0) options.level_time.learn(1.0, setup.level_ms);
  const DraftRequest request{.tokens = prompt,
                             .prompt_length = 2,
                             .max_draft_len = setup.max_draft_len,
                             .max_nodes = setup.max_nodes,
                             .sampling = &setup.sampling,
                             .acceptance = setup.rule,
                             .rate = setup.rate,
                             .row_ms = setup.row_ms,
                             .estimates = setup.estimates};
  TreeGrowth growth;
  growth.start(options, request, tree, history);
  std::vector<std::vector<float>> rows;
  while (!growth.frontier().empty()) {
    rows.clear();
    for (const int node : growth.frontier()) rows.push_back(setup.draft(path_to(tree, node)));
    growth.expand([&](size_t i) { return std::span<const float>(rows[i]); });
  }
  for (const auto& entry : history.entries()) EXPECT_EQ(entry.counts.output, 0);  // every push was popped
  return tree;
}

SpeculativeOptions static_tree(std::vector<int> expansion) {
  SpeculativeOptions options;
  options.tree.kind = TreeKind::kStatic;
  options.tree.expansion = std::move(expansion);
  return options;
}

SpeculativeOptions dynamic_tree(int width) {
  SpeculativeOptions options;
  options.tree.kind = TreeKind::kDynamic;
  options.tree.dynamic_tree_max_top_k = width;
  return options;
}

std::vector<int> nodes_per_level(const TokenTree& tree) {
  std::vector<int> counts;
  for (int node = 1; node < tree.size(); ++node) {
    counts.resize(std::max(counts.size(), static_cast<size_t>(tree.depth(node))));
    ++counts[static_cast<size_t>(tree.depth(node)) - 1];
  }
  return counts;
}

TokenId largest(const std::vector<float>& logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

TEST(TreeGrowth, AGreedyChainFollowsTheLargestLogit) {
  const TokenTree tree = grow({.max_draft_len = 4});
  EXPECT_THAT(nodes_per_level(tree), ElementsAre(1, 1, 1, 1));
  for (int node = 1; node < tree.size(); ++node) {
    EXPECT_EQ(tree.token(node), largest(logits_after(path_to(tree, tree.parent(node)))));
  }
}

TEST(TreeGrowth, AnExpansionVectorGivesEveryNodeOfALevelItsWidth) {
  for (const double temperature : {0.0, 0.8}) {
    for (const AcceptanceRule rule : {AcceptanceRule::kCoupled, AcceptanceRule::kRejection}) {
      SamplingParams sampling;
      sampling.temperature = temperature;
      const TokenTree tree =
          grow({.options = static_tree({2, 1, 3}), .sampling = sampling, .rule = rule, .max_draft_len = 8});
      EXPECT_THAT(nodes_per_level(tree), ElementsAre(2, 2, 6));
    }
  }
}

TEST(TreeGrowth, NeverExceedsItsLimits) {
  for (const SpeculativeOptions& options : {static_tree({3, 3, 3}), dynamic_tree(3)}) {
    for (int nodes = 1; nodes <= 14; ++nodes) {
      for (int depth = 1; depth <= 3; ++depth) {
        for (const double temperature : {0.0, 1.0}) {
          for (const AcceptanceRule rule : {AcceptanceRule::kCoupled, AcceptanceRule::kRejection}) {
            SamplingParams sampling;
            sampling.temperature = temperature;
            const TokenTree tree = grow({.options = options,
                                         .sampling = sampling,
                                         .rule = rule,
                                         .max_draft_len = depth,
                                         .max_nodes = nodes});
            EXPECT_LE(tree.drafted(), nodes);
            EXPECT_LE(static_cast<int>(nodes_per_level(tree).size()), depth);
            EXPECT_GE(tree.drafted(), 1);
          }
        }
      }
    }
  }
}

// Every path of one to three tokens with the product of its probabilities, by enumeration.
std::map<Path, double> all_paths() {
  std::map<Path, double> products = {{{}, 1.0}};
  std::vector<Path> level = {{}};
  for (int depth = 0; depth < 3; ++depth) {
    std::vector<Path> next;
    for (const Path& path : level) {
      const std::vector<float> logits = logits_after(path);
      double sum = 0.0;
      for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
      for (TokenId token = 0; token < kVocabulary; ++token) {
        Path longer = path;
        longer.push_back(token);
        products[longer] =
            products[path] * std::exp(static_cast<double>(logits[static_cast<size_t>(token)])) / sum;
        next.push_back(longer);
      }
    }
    level = std::move(next);
  }
  products.erase(Path{});
  return products;
}

TEST(TreeGrowth, ADynamicTreeHoldsTheLikeliestPaths) {
  const std::map<Path, double> products = all_paths();
  for (const int nodes : {1, 2, 5, 9, 20}) {
    // The width covers two levels of all tokens, so the tree can reach every likely path.
    const TokenTree tree = grow({.options = dynamic_tree(36), .max_draft_len = 3, .max_nodes = nodes});
    std::vector<double> sorted;
    for (const auto& [path, product] : products) sorted.push_back(product);
    std::sort(sorted.rbegin(), sorted.rend());
    ASSERT_EQ(tree.drafted(), nodes);
    std::vector<double> kept;
    for (int node = 1; node < tree.size(); ++node) kept.push_back(products.at(path_to(tree, node)));
    std::sort(kept.rbegin(), kept.rend());
    for (int i = 0; i < nodes; ++i)
      EXPECT_NEAR(kept[static_cast<size_t>(i)], sorted[static_cast<size_t>(i)], 1e-6);
  }
}

double share_of_whole(const std::vector<float>& logits, TokenId token, double temperature = 1.0) {
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(logit / temperature);
  return std::exp(logits[static_cast<size_t>(token)] / temperature) / sum;
}

// Not among the likeliest alone: thresholds and published trees are made for these.
TEST(TreeGrowth, ProbabilitiesAreSharesOfTheWholeVocabulary) {
  SpeculativeOptions chain;
  chain.stop.assistant_confidence_threshold = 1e-9;
  for (const SpeculativeOptions& options : {chain, dynamic_tree(2), dynamic_tree(4)}) {
    const TokenTree tree = grow({.options = options, .max_draft_len = 4, .max_nodes = 12});
    ASSERT_GE(tree.drafted(), 4);
    for (int node = 1; node < tree.size(); ++node) {
      const std::vector<float> logits = logits_after(path_to(tree, tree.parent(node)));
      EXPECT_NEAR(tree.probability(node), share_of_whole(logits, tree.token(node)), 1e-8);
    }
  }
}

// EAGLE-2 (2406.16858): of each level the K paths with the largest products are expanded, each by its K
// likeliest tokens; of all nodes the likeliest stay.
std::set<Path> published_tree(int width, int levels, int nodes) {
  using Scored = std::pair<double, Path>;
  const auto first = [](std::vector<Scored> paths, int count) {
    std::ranges::sort(paths, [](const Scored& a, const Scored& b) { return a.first > b.first; });
    paths.resize(std::min(paths.size(), static_cast<size_t>(count)));
    return paths;
  };
  std::vector<Scored> level = {{1.0, {}}}, all;
  for (int depth = 0; depth < levels; ++depth) {
    std::vector<Scored> next;
    for (const auto& [product, path] : level) {
      std::vector<Scored> children;
      const std::vector<float> logits = logits_after(path);
      for (TokenId token = 0; token < kVocabulary; ++token) {
        Path longer = path;
        longer.push_back(token);
        children.emplace_back(product * share_of_whole(logits, token), std::move(longer));
      }
      children = first(std::move(children), width);
      next.insert(next.end(), children.begin(), children.end());
    }
    all.insert(all.end(), next.begin(), next.end());
    level = first(std::move(next), width);
  }
  std::set<Path> tree;
  for (auto& [product, path] : first(std::move(all), nodes)) tree.insert(std::move(path));
  return tree;
}

TEST(TreeGrowth, ADynamicTreeIsEagle2s) {
  for (int width = 2; width <= 6; ++width) {
    for (const int nodes : {4, 8, 12, 20}) {
      const TokenTree tree = grow({.options = dynamic_tree(width), .max_draft_len = 4, .max_nodes = nodes});
      std::set<Path> paths;
      for (int node = 1; node < tree.size(); ++node) paths.insert(path_to(tree, node));
      EXPECT_EQ(paths, published_tree(width, 4, nodes)) << width << ", " << nodes;
    }
  }
}

// The draft of a sampled request ends after the first token with too small a share of the distribution that
// the drafter draws from, whatever the noise made of it.
TEST(TreeGrowth, SampledTokensAreHeldToTheThresholdByTheirShare) {
  SpeculativeOptions options;
  options.stop.assistant_confidence_threshold = 0.2;
  SamplingParams sampling;
  sampling.temperature = 0.5;
  int cut = 0, whole = 0;
  for (const AcceptanceRule rule : {AcceptanceRule::kCoupled, AcceptanceRule::kRejection}) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      sampling.seed = seed;
      const TokenTree tree = grow({.options = options, .sampling = sampling, .rule = rule});
      for (int node = 1; node < tree.size(); ++node) {
        const std::vector<float> logits = logits_after(path_to(tree, tree.parent(node)));
        const bool is_sure = share_of_whole(logits, tree.token(node), 0.5) >= 0.2;
        const bool is_last = node + 1 == tree.size();
        EXPECT_TRUE(is_sure || is_last) << "seed " << seed << ", node " << node;
        EXPECT_TRUE(!is_last || !is_sure || tree.drafted() == 4) << "seed " << seed;
      }
      (tree.drafted() == 4 ? whole : cut) += 1;
    }
  }
  EXPECT_GT(cut, 5);
  EXPECT_GT(whole, 0);
}

TEST(TreeGrowth, CoupledChildrenAreTheFirstOfTheTargetsOwnNoise) {
  SamplingParams sampling;
  sampling.temperature = 0.9;
  sampling.seed = 5;
  const TokenTree tree = grow({.options = static_tree({3, 2}), .sampling = sampling, .max_draft_len = 2});
  CounterRandomness randomness(5, 0);
  LogitsProcessor processor;
  TokenHistory history;
  for (int node = 0; node < 4; ++node) {
    const Distribution distribution = processor.build(logits_after(path_to(tree, node)), sampling, history);
    const std::vector<TokenId> expected =
        randomness.coupled_top(distribution, 2 + tree.depth(node), node == 0 ? 3 : 2);
    std::vector<TokenId> children;
    for (int child = 1; child < tree.size(); ++child) {
      if (tree.parent(child) == node) children.push_back(tree.token(child));
    }
    EXPECT_EQ(children, expected) << node;
  }
}

TEST(TreeGrowth, DrawsThatTheRuleTestsKeepTheirDistributionAndAreNeverDropped) {
  SamplingParams sampling;
  sampling.temperature = 1.0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    sampling.seed = seed;
    const TokenTree tree = grow({.options = dynamic_tree(3),
                                 .sampling = sampling,
                                 .rule = AcceptanceRule::kRejection,
                                 .max_draft_len = 4,
                                 .max_nodes = 9});
    std::set<int> parents;
    for (const Proposal& proposal : tree.proposals()) {
      ASSERT_GE(proposal.distribution, 0);
      parents.insert(proposal.parent);
    }
    for (const int parent : parents) {
      LogitsProcessor processor;
      EXPECT_EQ(tree.distribution(parent).probabilities,
                processor.build(logits_after(path_to(tree, parent)), sampling, TokenHistory()).probabilities);
    }
  }
}

TEST(TreeGrowth, LikeliestChildrenAreChosenUnderEveryRule) {
  SamplingParams sampling;
  sampling.temperature = 1.0;
  SpeculativeOptions options = static_tree({2});
  options.tree.children = ChildrenChoice::kTop;
  const TokenTree tree = grow({.options = options, .sampling = sampling, .rule = AcceptanceRule::kRejection});
  EXPECT_EQ(tree.children_kind(0), ChildrenKind::kChosen);
  EXPECT_EQ(tree.token(1), largest(logits_after({})));
  EXPECT_GT(tree.probability(1), tree.probability(2));
}

TEST(TreeGrowth, AnUnlikelyTokenEndsItsBranchAndStays) {
  SpeculativeOptions options;
  options.max_draft_len = 8;
  const TokenTree whole = grow({.options = options, .max_draft_len = 8});
  options.stop.assistant_confidence_threshold = 1e-9;
  const TokenTree with_probabilities = grow({.options = options, .max_draft_len = 8});
  ASSERT_EQ(with_probabilities.size(), whole.size());
  for (int node = 1; node < whole.size(); ++node) {
    options.stop.assistant_confidence_threshold = with_probabilities.probability(node) * 1.0001;
    const TokenTree cut = grow({.options = options, .max_draft_len = 8});
    // The branch ends with the first token below the threshold.
    int last = 1;
    while (with_probabilities.probability(last) >= options.stop.assistant_confidence_threshold) ++last;
    EXPECT_EQ(cut.size(), last + 1);
  }
}

TEST(TreeGrowth, AnUncertainDistributionEndsItsBranchAfterOneToken) {
  SpeculativeOptions options;
  options.stop.entropy_threshold = 1e-6;
  EXPECT_EQ(grow({.options = options}).drafted(), 1);
  options.stop.entropy_threshold = 10.0;
  EXPECT_EQ(grow({.options = options}).drafted(), 4);
}

TEST(TreeGrowth, StopsWhereALevelIsExpectedToAddLessThanItsTimeIsWorth) {
  const AcceptanceEstimates estimates;
  Growing setup{.max_draft_len = 4, .rate = 1.0, .level_ms = 1e-6, .estimates = &estimates};
  EXPECT_EQ(grow(setup).drafted(), 4);
  setup.level_ms = 1.0;  // a level is expected to add less than one token
  EXPECT_EQ(grow(setup).drafted(), 1);
  setup.level_ms = 1e-6;
  setup.row_ms = 1.0;  // nor is the target's row for it
  EXPECT_EQ(grow(setup).drafted(), 1);
}

// After every path the tokens 0 and 1 have the probabilities 0.6 and 0.4, a flat distribution.
std::vector<float> flat_distribution(const Path&) {
  std::vector<float> logits(kVocabulary, -60.0f);
  logits[0] = std::log(0.6f);
  logits[1] = std::log(0.4f);
  return logits;
}

// A dynamic tree of two children a node, in which every node is expected to be accepted with the draft's
// probability.
TEST(TreeGrowth, ExpandsTheNodesWhoseChildrenAreWorthTheirOwnTime) {
  const AcceptanceEstimates estimates;
  Growing setup{.options = dynamic_tree(2),
                .max_draft_len = 3,
                .rate = 1.0,
                .row_ms = 1e-6,
                .estimates = &estimates,
                .draft = flat_distribution};
  const auto expanded_at = [&](int depth) {
    const TokenTree tree = grow(setup);
    std::set<int> parents;
    for (int node = 1; node < tree.size(); ++node)
      if (tree.depth(node) == depth + 1) parents.insert(tree.parent(node));
    return parents.size();
  };
  setup.level_ms = 1e-6;
  EXPECT_EQ(expanded_at(1), 2U);
  // The root's children are accepted with probabilities 0.6 and 0.4, and followed by an accepted token with
  // 0.7, as long as nothing is known.
  setup.node_ms = 0.3;
  EXPECT_EQ(expanded_at(1), 1U);
  setup.node_ms = 0.5;
  EXPECT_EQ(expanded_at(1), 0U);
  setup.node_ms = 1e-6;
  setup.row_ms = 0.0;  // a level is explored
  EXPECT_EQ(expanded_at(1), 1U);
}

std::vector<Path> paths_of(const TokenTree& tree) {
  std::vector<Path> paths;
  for (int node = 1; node < tree.size(); ++node) paths.push_back(path_to(tree, node));
  return paths;
}

TEST(TreeGrowth, ALowerRankingTemperatureMakesGreedyTreesNarrowAndDeep) {
  Growing setup{.options = dynamic_tree(2), .max_draft_len = 3, .max_nodes = 3, .draft = flat_distribution};
  const TokenTree flat = grow(setup);  // 0.6, 0.4, 0.36; then 0.24
  EXPECT_THAT(paths_of(flat), ElementsAre(Path{0}, Path{1}, Path{0, 0}));
  EXPECT_NEAR(flat.probability(1), 0.6, 1e-6);
  setup.options.ranking_temperature = 1.0;
  EXPECT_THAT(paths_of(grow(setup)), ElementsAre(Path{0}, Path{1}, Path{0, 0}));
  setup.options.ranking_temperature = 0.25;
  const TokenTree sharp = grow(setup);  // 0.835, 0.697, 0.582; then 0.165
  EXPECT_THAT(paths_of(sharp), ElementsAre(Path{0}, Path{0, 0}, Path{0, 0, 0}));
  const double sharpened = std::pow(0.6, 4) / (std::pow(0.6, 4) + std::pow(0.4, 4));
  EXPECT_NEAR(sharp.probability(1), sharpened, 1e-6);
}

TEST(TreeGrowth, TheRankingTemperatureLeavesSampledRequestsAlone) {
  SamplingParams sampling;
  sampling.temperature = 0.8;
  for (const ChildrenChoice children : {ChildrenChoice::kSampled, ChildrenChoice::kTop}) {
    for (const AcceptanceRule rule : {AcceptanceRule::kCoupled, AcceptanceRule::kRejection}) {
      for (sampling.seed = 0; sampling.seed < 10; ++sampling.seed) {
        Growing setup{.options = dynamic_tree(3), .sampling = sampling, .rule = rule, .max_nodes = 9};
        setup.options.tree.children = children;
        const TokenTree usual = grow(setup);
        setup.options.ranking_temperature = 0.25;
        const TokenTree other = grow(setup);
        ASSERT_EQ(paths_of(usual), paths_of(other));
        for (int node = 1; node < usual.size(); ++node)
          ASSERT_EQ(usual.probability(node), other.probability(node));
        ASSERT_EQ(usual.proposals().size(), other.proposals().size());
        for (size_t i = 0; i < usual.proposals().size(); ++i) {
          const int distribution = usual.proposals()[i].distribution;
          ASSERT_EQ(distribution, other.proposals()[i].distribution);
          if (distribution < 0) continue;
          ASSERT_EQ(usual.distribution_at(distribution).probabilities,
                    other.distribution_at(distribution).probabilities);
        }
      }
    }
  }
}

}  // namespace
}  // namespace outrider
