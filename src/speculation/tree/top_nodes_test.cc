// SPDX-License-Identifier: Apache-2.0
#include "speculation/tree/top_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "speculation/tree/test_trees.h"

namespace outrider {
namespace {

using testing::ElementsAre;

TokenTree ranked_branches() { return two_branches_with({0.5, 0.6, 0.9, 0.5, 1.0}); }

TEST(TopNodes, OrderedByTheProductOfTheirPath) {
  TopNodes top_nodes;
  EXPECT_THAT(top_nodes.order(ranked_branches()), ElementsAre(2, 1, 3, 5, 4));
  EXPECT_DOUBLE_EQ(top_nodes.path_probability(5), 0.45);
  EXPECT_DOUBLE_EQ(top_nodes.path_probability(4), 0.3);
  TokenTree certain(0);  // ties keep the order in which they were drafted
  for (int i = 0; i < 40; ++i) certain.add(i / 3, i);
  EXPECT_TRUE(std::ranges::is_sorted(top_nodes.order(certain)));
}

TEST(TopNodes, KeepsTheFirstInTheirPlaces) {
  TopNodes top_nodes;
  TokenTree tree = ranked_branches();
  top_nodes.keep(tree, 3);
  EXPECT_THAT(tree.tokens(), ElementsAre(9, 10, 20, 30));
  EXPECT_THAT(tree.parents(), ElementsAre(-1, 0, 0, 1));
  top_nodes.keep(tree, 3);
  EXPECT_EQ(tree.size(), 4);
  top_nodes.keep(tree, 0);
  EXPECT_THAT(tree.tokens(), ElementsAre(9));
  top_nodes.keep(tree, 4);
  EXPECT_EQ(tree.size(), 1);
}

// Compares with a search that picks the likeliest node below a picked parent, again and again.
TEST(TopNodes, AreThoseAGreedyWalkFinds) {
  std::mt19937 random(3);
  TopNodes top_nodes;
  for (int round = 0; round < 300; ++round) {
    TokenTree tree(0);
    const int size = 1 + static_cast<int>(random() % 30);
    for (int i = 0; i < size; ++i) {
      tree.add(static_cast<int>(random() % static_cast<uint32_t>(tree.size())), 100 + i,
               static_cast<double>(1 + random() % 4) / 4.0);  // few values: many ties, some of them 1
    }
    const int count = static_cast<int>(random() % static_cast<uint32_t>(size + 2));
    const auto product = [&](int node) {
      double p = 1.0;
      for (; node > 0; node = tree.parent(node)) p *= tree.probability(node);
      return p;
    };
    std::set<int> picked = {0};
    while (static_cast<int>(picked.size()) < std::min(count, size) + 1) {
      int best = -1;
      for (int node = 1; node < tree.size(); ++node) {
        if (picked.contains(node) || !picked.contains(tree.parent(node))) continue;
        if (best < 0 || product(node) > product(best)) best = node;
      }
      picked.insert(best);
    }
    TokenTree kept = tree;
    top_nodes.keep(kept, count);
    std::vector<TokenId> expected;
    for (const int node : picked) expected.push_back(tree.token(node));
    EXPECT_THAT(kept.tokens(), testing::ElementsAreArray(expected)) << "round " << round;
  }
}

}  // namespace
}  // namespace outrider
