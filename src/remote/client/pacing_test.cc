// SPDX-License-Identifier: Apache-2.0
#include "remote/client/pacing.h"

#include <gtest/gtest.h>

#include <vector>

namespace outrider {
namespace {

TEST(ServerTime, FindsThePriceOfANode) {
  ServerTime time;
  for (const int nodes : {2, 8, 32, 5, 40, 12}) time.learn(nodes, 3.0 + 0.4 * nodes);
  EXPECT_NEAR(time.row_ms(), 0.4, 0.02);
}

TEST(ServerTime, TreesOfOneSizeAndStallsSayLittle) {
  ServerTime time;
  for (int i = 0; i < 20; ++i) time.learn(8, i % 2 == 0 ? 3.0 : 4.0);
  EXPECT_EQ(time.row_ms(), 0.0);
  for (const int nodes : {2, 8, 32, 5, 40, 12}) time.learn(nodes, 4.0);
  time.learn(40, 400.0);
  EXPECT_LT(time.row_ms(), 0.1);
}

// The root's children 1 and 2, and a chain of ten after 1. The drafter is sure of the chain, and half sure
// of 2.
TokenTree drafted() {
  TokenTree tree(0);
  int parent = tree.add(0, 1, 0.9);
  tree.add(0, 2, 0.05);
  for (int i = 0; i < 9; ++i) parent = tree.add(parent, 3 + i, 0.9);
  return tree;
}

// A session of rounds with trees of 2 to 32 nodes; a node takes the server `row_ms`; at most `accepted` of
// them are accepted.
Pacing session(double row_ms, int accepted) {
  Pacing pacing;
  for (int round = 0; round < 40; ++round) {
    TokenTree tree(0);
    int parent = 0;
    const int nodes = 2 << (round % 5);
    for (int i = 0; i < nodes; ++i) parent = tree.add(parent, i + 1, 0.9);
    std::vector<TokenId> tokens;
    for (int i = 0; i < std::min(nodes, accepted); ++i) tokens.push_back(i + 1);
    tokens.push_back(-1);
    const double server_ms = 5.0 + row_ms * nodes;
    pacing.on_verdict(tree, tokens, {.server_ms = server_ms, .waited_ms = server_ms, .round_ms = server_ms});
  }
  return pacing;
}

TEST(Pacing, NodesAreWorthTheServersTime) {
  const auto kept = [](double row_ms, int accepted) {
    TokenTree tree = drafted();
    session(row_ms, accepted).prune(tree);
    return tree;
  };
  EXPECT_EQ(kept(0.0, 3).drafted(), 11);
  EXPECT_EQ(kept(2.0, 3).drafted(), 3);
  EXPECT_EQ(kept(2.0, 5).drafted(), 5);
  EXPECT_EQ(kept(2.0, 0).drafted(), 1);
  TokenTree none(0);
  session(2.0, 0).prune(none);
  EXPECT_EQ(none.drafted(), 0);
}

TEST(Pacing, TheFirstTreesHaveDifferentSizes) {
  Pacing pacing;
  std::vector<int> sizes;
  for (int round = 0; round < 5; ++round) {
    sizes.push_back(pacing.max_nodes());
    EXPECT_EQ(pacing.rate() > 0.0, round == 4);
    pacing.on_verdict(TokenTree(0), std::vector<TokenId>{1}, {.server_ms = 1, .waited_ms = 1, .round_ms = 1});
  }
  EXPECT_EQ(std::vector<int>(sizes.begin(), sizes.end() - 1), (std::vector<int>{2, 8, 32, 128}));
  EXPECT_GT(sizes.back(), 1000);
}

}  // namespace
}  // namespace outrider
