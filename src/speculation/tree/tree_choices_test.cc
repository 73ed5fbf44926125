// SPDX-License-Identifier: Apache-2.0
#include "speculation/tree/tree_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace outrider {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const TreeChoices& choices) {
  const Status status = check_tree_choices(choices);
  return status.ok() ? "" : status.error().message;
}

TEST(TreeChoices, ThePublishedOnesMakeATree) {
  const TreeChoices& choices = published_choices();
  EXPECT_EQ(choices.size(), 63u);
  EXPECT_EQ(depth_of(choices), 4);
  EXPECT_EQ(refusal(choices), "");
}

TEST(TreeChoices, EveryNodeHasItsParentAndEarlierSiblings) {
  EXPECT_EQ(refusal({{1}, {0, 0}, {0}}), "");  // in any order
  EXPECT_THAT(refusal({{0}, {1, 0}}), HasSubstr("[1, 0] without [1]"));
  EXPECT_THAT(refusal({{0}, {0, 1}}), HasSubstr("[0, 1] without [0, 0]"));
  EXPECT_THAT(refusal({{1}}), HasSubstr("[1] without [0]"));
  EXPECT_THAT(refusal({{0}, {0}}), HasSubstr("[0] twice"));
  EXPECT_THAT(refusal({{0}, {}}), HasSubstr("found []"));
  EXPECT_THAT(refusal({{-1}}), HasSubstr("found [-1]"));
  EXPECT_THAT(refusal({}), HasSubstr("found 0"));
}

TEST(TreeChoices, FirstChoicesAreATree) {
  for (size_t count = 1; count <= 63; ++count)
    EXPECT_EQ(refusal(first_choices(published_choices(), 4, count)), "") << count;
  EXPECT_EQ(depth_of(first_choices(published_choices(), 2, 63)), 2);
}

// Compares with the products of all possible nodes.
TEST(TreeChoices, TheBestHaveTheLargestProducts) {
  const std::vector<std::vector<double>> accuracies = {{0.5, 0.2, 0.1}, {0.4, 0.25}, {0.3, 0.02, 0.01}};
  std::vector<double> products;
  const auto product = [&](const std::vector<int>& choice) {
    double value = 1.0;
    for (size_t level = 0; level < choice.size(); ++level)
      value *= accuracies[level][static_cast<size_t>(choice[level])];
    return value;
  };
  for (int a = 0; a < 3; ++a) {
    products.push_back(product({a}));
    for (int b = 0; b < 2; ++b) {
      products.push_back(product({a, b}));
      for (int c = 0; c < 3; ++c) products.push_back(product({a, b, c}));
    }
  }
  std::ranges::sort(products, std::greater<>());
  for (size_t count = 1; count <= products.size() + 1; ++count) {
    const TreeChoices best = best_choices(accuracies, count);
    ASSERT_EQ(best.size(), std::min(count, products.size()));
    EXPECT_EQ(refusal(best), "");
    for (size_t i = 0; i < best.size(); ++i) EXPECT_DOUBLE_EQ(product(best[i]), products[i]) << i;
  }
}

// A rank with a higher accuracy than the rank before it still comes after it.
TEST(TreeChoices, SiblingsKeepTheirOrder) {
  const std::vector<std::vector<double>> accuracies = {{0.1, 0.6, 0.2}};
  EXPECT_THAT(best_choices(accuracies, 2), ElementsAre(ElementsAre(0), ElementsAre(1)));
}

}  // namespace
}  // namespace outrider
