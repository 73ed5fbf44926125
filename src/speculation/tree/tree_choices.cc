// SPDX-License-Identifier: Apache-2.0
#include "speculation/tree/tree_choices.h"

#include <algorithm>
#include <queue>
#include <set>
#include <string>
#include <utility>

#include "config/methods.h"

namespace outrider {
namespace {

constexpr size_t kMaxNodes = 1024;

std::string text_of(const std::vector<int>& choice) {
  std::string text = "[";
  for (const int rank : choice) text += (text.size() > 1 ? ", " : "") + std::to_string(rank);
  return text + "]";
}

}  // namespace

Status check_tree_choices(const TreeChoices& choices) {
  if (choices.empty() || choices.size() > kMaxNodes) {
    return usage_error("medusa_choices expects 1 to 1024 nodes, found " + std::to_string(choices.size()));
  }
  std::set<std::vector<int>> listed;
  for (const std::vector<int>& choice : choices) {
    const bool has_ranks = std::ranges::all_of(choice, [](int rank) { return rank >= 0; });
    if (choice.empty() || std::cmp_greater(choice.size(), kMaxDraftLen) || !has_ranks) {
      return usage_error("medusa_choices expects nodes of 1 to 64 ranks from 0 on, found " + text_of(choice));
    }
    if (!listed.insert(choice).second)
      return usage_error("medusa_choices lists " + text_of(choice) + " twice; keep one");
  }
  for (const std::vector<int>& choice : choices) {
    std::vector<int> needed = choice;
    if (needed.back() > 0) {
      --needed.back();
    } else {
      needed.pop_back();
    }
    if (needed.empty() || listed.contains(needed)) continue;
    return usage_error("medusa_choices lists " + text_of(choice) + " without " + text_of(needed) +
                       ", which comes before it; add it");
  }
  return {};
}

int depth_of(const TreeChoices& choices) {
  size_t depth = 0;
  for (const std::vector<int>& choice : choices) depth = std::max(depth, choice.size());
  return static_cast<int>(depth);
}

TreeChoices first_choices(const TreeChoices& choices, int depth, size_t count) {
  TreeChoices kept;
  for (const std::vector<int>& choice : choices) {
    if (kept.size() < count && std::cmp_less_equal(choice.size(), depth)) kept.push_back(choice);
  }
  return kept;
}

const TreeChoices& published_choices() {
  static const TreeChoices kChoices = {
      {0},       {0, 0},    {1},       {0, 1},    {2},          {0, 0, 0}, {1, 0},    {0, 2},
      {3},       {0, 3},    {4},       {0, 4},    {2, 0},       {0, 5},    {0, 0, 1}, {5},
      {0, 6},    {6},       {0, 7},    {0, 1, 0}, {1, 1},       {7},       {0, 8},    {0, 0, 2},
      {3, 0},    {0, 9},    {8},       {9},       {1, 0, 0},    {0, 2, 0}, {1, 2},    {0, 0, 3},
      {4, 0},    {2, 1},    {0, 0, 4}, {0, 0, 5}, {0, 0, 0, 0}, {0, 1, 1}, {0, 0, 6}, {0, 3, 0},
      {5, 0},    {1, 3},    {0, 0, 7}, {0, 0, 8}, {0, 0, 9},    {6, 0},    {0, 4, 0}, {1, 4},
      {7, 0},    {0, 1, 2}, {2, 0, 0}, {3, 1},    {2, 2},       {8, 0},    {0, 5, 0}, {1, 5},
      {1, 0, 1}, {0, 2, 1}, {9, 0},    {0, 6, 0}, {0, 0, 0, 1}, {1, 6},    {0, 7, 0}};
  return kChoices;
}

TreeChoices best_choices(std::span<const std::vector<double>> accuracies, size_t count) {
  struct Node {
    double product = 1.0;
    std::vector<int> choice;
    // Ties go to the shorter choice, then to the lower ranks.
    bool operator<(const Node& other) const {
      if (product != other.product) return product < other.product;
      if (choice.size() != other.choice.size()) return choice.size() > other.choice.size();
      return choice > other.choice;
    }
  };
  std::priority_queue<Node> open;
  const auto offer = [&](double product, std::vector<int> choice) {
    const size_t level = choice.size() - 1;
    if (level >= accuracies.size() || std::cmp_greater_equal(choice.back(), accuracies[level].size())) return;
    product *= accuracies[level][static_cast<size_t>(choice.back())];
    if (product > 0.0) open.push({product, std::move(choice)});
  };
  const auto product_above = [&](const std::vector<int>& choice) {
    double product = 1.0;
    for (size_t level = 0; level + 1 < choice.size(); ++level)
      product *= accuracies[level][static_cast<size_t>(choice[level])];
    return product;
  };
  TreeChoices best;
  offer(1.0, {0});
  while (!open.empty() && best.size() < count) {
    Node node = open.top();
    open.pop();
    std::vector<int> child = node.choice, sibling = node.choice;
    child.push_back(0);
    ++sibling.back();
    offer(node.product, std::move(child));
    const double above = product_above(sibling);
    offer(above, std::move(sibling));
    best.push_back(std::move(node.choice));
  }
  return best;
}

}  // namespace outrider
