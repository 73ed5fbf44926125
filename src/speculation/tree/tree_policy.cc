// SPDX-License-Identifier: Apache-2.0
#include "speculation/tree/tree_policy.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "config/methods.h"

namespace outrider {
namespace {

int largest_tree_of_one(const SpeculativeOptions& options) {
  if (options.tree.kind == TreeKind::kChain) return options.max_draft_len;
  if (options.tree.kind == TreeKind::kChoices) return static_cast<int>(options.tree.choices.size());
  constexpr int kMax = 1024;
  int level = 1, nodes = 0;
  for (const int width : options.tree.expansion) {
    level = std::min(level * width, kMax);
    nodes = std::min(nodes + level, kMax);
  }
  return nodes;
}

}  // namespace

int StaticTreePolicy::plan_level(const TreeLevel& level, std::span<const double>,
                                 std::vector<int>& frontier) const {
  const auto depth = static_cast<size_t>(level.depth);
  if (depth >= expansion_.size()) frontier.clear();
  return frontier.empty() ? 0 : expansion_[depth];
}

int StaticTreePolicy::usual_width(int nodes) const {
  int64_t level = 1, widest = 1;
  for (const int children : expansion_) {
    widest = std::max(widest, level);  // the last level is not expanded
    level = std::min<int64_t>(level * children, nodes);
  }
  return static_cast<int>(widest);
}

int DynamicTreePolicy::plan_level(const TreeLevel& level, std::span<const double> scores,
                                  std::vector<int>& frontier) const {
  std::sort(frontier.begin(), frontier.end(), [&](int a, int b) {
    const double score_a = scores[static_cast<size_t>(a)];
    const double score_b = scores[static_cast<size_t>(b)];
    return score_a != score_b ? score_a > score_b : a < b;
  });
  const auto keep_first = [&](int count) {
    if (std::cmp_less(count, frontier.size())) frontier.resize(static_cast<size_t>(count));
  };
  if (level.may_drop) {
    keep_first(width_);
    return width_;
  }
  if (level.remaining_nodes <= 0 || frontier.empty()) return 0;
  const int share = std::max(1, level.remaining_nodes / std::max(1, level.remaining_depth));
  const int width = std::min(width_, share);
  keep_first((share + width - 1) / width);
  return width;
}

ChoicesTreePolicy::ChoicesTreePolicy(std::span<const std::vector<int>> choices) {
  std::map<std::vector<int>, int> indices = {{{}, 0}};
  std::vector<std::vector<int>> ordered(choices.begin(), choices.end());
  std::sort(ordered.begin(), ordered.end());  // parents and earlier siblings first
  children_.resize(ordered.size() + 1);
  for (std::vector<int>& choice : ordered) {
    const auto index = static_cast<int>(indices.size());
    const std::vector<int> parent(choice.begin(), choice.end() - 1);
    children_[static_cast<size_t>(indices.at(parent))].push_back(index);
    indices.emplace(std::move(choice), index);
  }
}

// The node's index in the list, -1 if it is not listed.
int ChoicesTreePolicy::index_of(const TokenTree& tree, int node) const {
  if (node == 0) return 0;
  const int parent = index_of(tree, tree.parent(node));
  if (parent < 0) return -1;
  const auto parents = tree.parents();
  const auto rank =
      static_cast<size_t>(std::count(parents.begin(), parents.begin() + node, tree.parent(node)));
  const std::vector<int>& siblings = children_[static_cast<size_t>(parent)];
  return rank < siblings.size() ? siblings[rank] : -1;
}

int ChoicesTreePolicy::children_of(const TokenTree& tree, int node, int max) const {
  const int index = index_of(tree, node);
  return index < 0 ? 0 : std::min(max, static_cast<int>(children_[static_cast<size_t>(index)].size()));
}

int ChoicesTreePolicy::plan_level(const TreeLevel& level, std::span<const double>,
                                  std::vector<int>& frontier) const {
  int max = 0;
  std::erase_if(frontier, [&](int node) {
    const int children = children_of(*level.tree, node, std::numeric_limits<int>::max());
    max = std::max(max, children);
    return children == 0;
  });
  return max;
}

std::unique_ptr<TreePolicy> make_tree_policy(const SpeculativeOptions& options) {
  switch (options.tree.kind) {
    case TreeKind::kStatic:
      return std::make_unique<StaticTreePolicy>(options.tree.expansion);
    case TreeKind::kDynamic:
      return std::make_unique<DynamicTreePolicy>(options.tree.dynamic_tree_max_top_k);
    case TreeKind::kChoices:
      return std::make_unique<ChoicesTreePolicy>(options.tree.choices);
    case TreeKind::kChain:
      break;
  }
  return std::make_unique<StaticTreePolicy>(std::vector<int>(static_cast<size_t>(options.max_draft_len), 1));
}

int max_tree_nodes(const SpeculativeOptions& options) {
  if (options.tree.kind == TreeKind::kDynamic) return options.tree.max_total_draft_tokens;
  const MethodNeeds needs = method_row(options.decoding_type).needs;
  const size_t drafters = needs == MethodNeeds::kMethods       ? options.combine.size()
                          : needs == MethodNeeds::kDraftModels ? options.speculative_models.size()
                                                               : 1;
  return static_cast<int>(std::max<size_t>(1, drafters)) * largest_tree_of_one(options);
}

}  // namespace outrider
