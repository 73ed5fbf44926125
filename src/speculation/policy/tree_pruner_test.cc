// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/tree_pruner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

namespace outrider {
namespace {

StepCosts costs(double per_row) {
  StepCosts costs(PassCosts({{1, 1.0, 0.0}, {101, 1.0 + 100 * per_row, 0.0}}));
  costs.begin({}, 1.0);
  return costs;
}

double value(const std::vector<double>& kept, double rate, double per_row) {
  double sum = 0.0;
  for (const double probability : kept) sum += probability;
  return sum - rate * per_row * static_cast<double>(kept.size());
}

// Compares with all cuts of three small trees that keep the parents of kept nodes.
TEST(TreePruner, NoOtherCutBringsMore) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(0.05, 0.95);
  const AcceptanceEstimates estimates;
  for (int run = 0; run < 200; ++run) {
    std::vector<TokenTree> trees(3, TokenTree(0));
    struct Node {
      double probability;
      int parent;  // index into nodes, -1: a root
    };
    std::vector<Node> nodes;
    for (TokenTree& tree : trees) {
      const int first = static_cast<int>(nodes.size()) - 1;  // index that node 0 would have
      for (int i = 0; i < 3; ++i) {
        const int parent = static_cast<int>(random() % static_cast<uint64_t>(tree.size()));
        const int node = tree.add(parent, i + 1, uniform(random));
        const double own = estimates.estimate(tree.depth(node), tree.probability(node));
        const int above = parent == 0 ? -1 : first + parent;
        nodes.push_back({above < 0 ? own : own * nodes[static_cast<size_t>(above)].probability, above});
      }
    }
    const double rate = uniform(random), per_row = uniform(random);
    double best = 0.0;
    for (unsigned kept = 0; kept < 1u << nodes.size(); ++kept) {
      std::vector<double> chosen;
      bool is_whole = true;
      for (size_t i = 0; i < nodes.size(); ++i) {
        if ((kept >> i & 1) == 0) continue;
        chosen.push_back(nodes[i].probability);
        is_whole &= nodes[i].parent < 0 || (kept >> nodes[i].parent & 1) != 0;
      }
      if (is_whole) best = std::max(best, value(chosen, rate, per_row));
    }
    TreePruner pruner;
    for (TokenTree& tree : trees) pruner.add(tree, estimates);
    const size_t count = pruner.keep({.rate = rate, .max_rows = 100.0}, costs(per_row));
    std::vector<double> left;
    for (const TokenTree& tree : trees) {
      std::vector<double> products = {1.0};
      for (int node = 1; node < tree.size(); ++node) {
        products.push_back(products[static_cast<size_t>(tree.parent(node))] *
                           estimates.estimate(tree.depth(node), tree.probability(node)));
        left.push_back(products.back());
      }
    }
    ASSERT_EQ(left.size(), count);
    EXPECT_NEAR(value(left, rate, per_row), best, 1e-9) << run;
  }
}

TEST(TreePruner, RowsOfOthersCountAgainstTheLimit) {
  TokenTree tree(0);
  for (int i = 0; i < 4; ++i) tree.add(0, i + 1, 0.9 - 0.1 * i);
  TreePruner pruner;
  pruner.add(tree, AcceptanceEstimates());
  EXPECT_EQ(pruner.keep({.rate = 0.001, .other_rows = 3.0, .max_rows = 5.0}, costs(0.001)), 2u);
  EXPECT_EQ(tree.drafted(), 2);
  EXPECT_EQ(tree.token(1), 1);
  EXPECT_EQ(tree.token(2), 2);
  pruner.clear();
  EXPECT_EQ(pruner.keep({.rate = 0.001, .other_rows = 6.0, .max_rows = 5.0}, costs(0.001)), 0u);
}

}  // namespace
}  // namespace outrider
