// SPDX-License-Identifier: Apache-2.0
#include "drafters/ranked/draft_messages.h"

#include <gtest/gtest.h>

#include <random>

namespace outrider {
namespace {

void expect_same(const TokenTree& a, const TokenTree& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_EQ(a.proposals().size(), b.proposals().size());
  for (int node = 0; node < a.size(); ++node) {
    EXPECT_EQ(a.token(node), b.token(node));
    EXPECT_EQ(a.parent(node), b.parent(node));
    EXPECT_EQ(a.depth(node), b.depth(node));
    EXPECT_EQ(a.probability(node), b.probability(node));
  }
  for (size_t i = 0; i < a.proposals().size(); ++i) {
    const Proposal& one = a.proposals()[i];
    const Proposal& other = b.proposals()[i];
    EXPECT_EQ(one.parent, other.parent);
    EXPECT_EQ(one.child, other.child);
    ASSERT_EQ(one.distribution < 0, other.distribution < 0);
    if (one.distribution < 0) continue;
    EXPECT_EQ(a.kind_at(one.distribution), b.kind_at(other.distribution));
    EXPECT_EQ(a.distribution_at(one.distribution).tokens, b.distribution_at(other.distribution).tokens);
    EXPECT_EQ(a.distribution_at(one.distribution).probabilities,
              b.distribution_at(other.distribution).probabilities);
  }
}

// A tree of chosen or drawn children; independent draws repeat.
TokenTree random_tree(std::mt19937& random) {
  TokenTree tree(static_cast<TokenId>(random() % 100));
  const auto nodes = static_cast<int>(random() % 20);
  for (int parent = 0; parent < tree.size() && tree.size() < nodes; ++parent) {
    if (random() % 3 != 0) {
      Distribution distribution;
      for (TokenId token = 0; token < static_cast<TokenId>(1 + random() % 4); ++token) {
        distribution.tokens.push_back(token);
        distribution.probabilities.push_back(1.0 / static_cast<double>(2 + random() % 5));
      }
      tree.set_distribution(parent, distribution,
                            random() % 2 == 0 ? ChildrenKind::kSampled : ChildrenKind::kIndependent);
    }
    for (auto child = random() % 4; child > 0; --child)
      tree.add(parent, static_cast<TokenId>(random() % 4), 0.1 + static_cast<double>(random() % 9) / 10);
  }
  return tree;
}

TEST(DraftMessages, TreesArriveAsTheyAre) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    TokenTree tree = random_tree(random);
    if (i % 4 == 0 && tree.size() > 2) {
      std::vector<uint8_t> kept(static_cast<size_t>(tree.size()), 1);
      kept[1 + random() % static_cast<size_t>(tree.size() - 1)] = 0;
      tree.keep(kept);
    }
    MessageWriter writer;
    write_tree(writer, tree);
    MessageReader reader(writer.bytes());
    TokenTree arrived(tree.token(0));
    read_tree(reader, arrived);
    expect_same(tree, arrived);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(DraftMessages, OrdersAndSettingsArriveAsTheyAre) {
  DraftOrder order{
      .sequence = 7, .scope = 3, .kept = 5, .tokens = {1, 2, 3}, .prompt_length = 4, .max_draft_len = 9};
  order.max_children = 3;
  order.may_guess = true;
  order.rate = 0.25;
  order.row_ms = 0.5;
  order.sampling.logit_bias = {{5, -1.5F}, {9, 2.0F}};
  order.sampling.top_k = 11;
  order.sampling.seed = 1234567890123;
  order.estimates.resize(2);
  order.estimates[1].learn(2, 0.5, true);
  MessageWriter writer;
  write_order(writer, order);
  DrafterSettings settings{
      .target = "a", .kernels = "reference", .page_size = 16, .device = "emulated", .first_device = 3};
  settings.speculation.tree.choices = {{0}, {0, 1}};
  settings.speculation.speculative_model = "draft";
  settings.speculation.speculative_token_map = "map.json";
  settings.speculation.vocabulary_match = VocabularyMatch::kStrings;
  write_settings(writer, settings);
  MessageReader reader(writer.bytes());
  const DraftOrder arrived = read_order(reader);
  EXPECT_EQ(arrived.sequence, order.sequence);
  EXPECT_EQ(arrived.tokens, order.tokens);
  EXPECT_EQ(arrived.max_draft_len, order.max_draft_len);
  EXPECT_EQ(arrived.max_children, order.max_children);
  EXPECT_EQ(arrived.may_guess, order.may_guess);
  EXPECT_EQ(arrived.rate, order.rate);
  EXPECT_EQ(arrived.row_ms, order.row_ms);
  EXPECT_EQ(arrived.sampling.logit_bias, order.sampling.logit_bias);
  EXPECT_EQ(arrived.sampling.top_k, order.sampling.top_k);
  EXPECT_EQ(arrived.sampling.seed, order.sampling.seed);
  ASSERT_EQ(arrived.estimates.size(), 2U);
  EXPECT_EQ(arrived.estimates[1].estimate(2, 0.5), order.estimates[1].estimate(2, 0.5));
  EXPECT_NE(arrived.estimates[0].estimate(2, 0.5), order.estimates[1].estimate(2, 0.5));
  const DrafterSettings opened = read_settings(reader);
  EXPECT_EQ(opened.target, settings.target);
  EXPECT_EQ(opened.page_size, settings.page_size);
  EXPECT_EQ(opened.device, settings.device);
  EXPECT_EQ(opened.first_device, settings.first_device);
  EXPECT_EQ(opened.speculation.tree.choices, settings.speculation.tree.choices);
  EXPECT_EQ(opened.speculation.speculative_model, settings.speculation.speculative_model);
  EXPECT_EQ(opened.speculation.speculative_token_map, settings.speculation.speculative_token_map);
  EXPECT_EQ(opened.speculation.vocabulary_match, settings.speculation.vocabulary_match);
}

}  // namespace
}  // namespace outrider
