// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "outrider/engine.h"
#include "outrider/token_tree.h"

namespace outrider {

// A level of a tree about to be drafted.
struct TreeLevel {
  const TokenTree* tree = nullptr;
  int depth = 0;        // of the nodes to expand; the root's is 0
  int nodes_left = 0;   // that may still be added
  int levels_left = 0;  // this one included
  bool may_drop =
      true;  // false: nodes are drawn from distributions that the acceptance rule tests, so all of them stay
};

// Decides the shape of trees that grow level by level.
class TreePolicy {
 public:
  virtual ~TreePolicy() = default;

  // Leaves in `frontier`, the nodes drafted last, those to expand, and returns how many children to ask of
  // each; 0 ends the tree. scores[node]: probability, by the drafter's account, that the node is accepted.
  virtual int plan_level(const TreeLevel& level, std::span<const double> scores,
                         std::vector<int>& frontier) const = 0;

  // Of those, for one node of the frontier.
  virtual int children_of(const TokenTree& /*tree*/, int /*node*/, int max) const { return max; }

  // Whether more nodes are drafted than stay: the likeliest do.
  virtual bool drops() const { return false; }

  // Nodes that a tree of so many nodes and levels may have expanded, the root not counted.
  virtual int max_expanded(int nodes, int /*levels*/) const { return nodes; }

  // Nodes that a level of such a tree has expanded, mostly: trees whose nodes must not be dropped may do
  // more.
  virtual int usual_width(int nodes) const { return nodes; }
};

// SpecInfer's expansion vector: every node of level i gets expansion[i] children, nothing below the last; a
// chain is all ones (2305.09781, 3).
class StaticTreePolicy final : public TreePolicy {
 public:
  explicit StaticTreePolicy(std::vector<int> expansion) : expansion_(std::move(expansion)) {}
  int plan_level(const TreeLevel& level, std::span<const double> scores,
                 std::vector<int>& frontier) const override;
  int usual_width(int nodes) const override;

 private:
  std::vector<int> expansion_;
};

// EAGLE-2's: of every level the `width` likeliest nodes are expanded with `width` children each, and in the
// end the likeliest nodes of all stay, equal ones in the order they were drafted (2406.16858). Where nodes
// must not be dropped the budget is dealt out level by level to the likeliest nodes instead.
class DynamicTreePolicy final : public TreePolicy {
 public:
  explicit DynamicTreePolicy(int width) : width_(width) {}
  int plan_level(const TreeLevel& level, std::span<const double> scores,
                 std::vector<int>& frontier) const override;
  bool drops() const override { return true; }
  int max_expanded(int nodes, int levels) const override { return std::max(nodes, levels * width_); }
  int usual_width(int /*nodes*/) const override { return width_; }

 private:
  int width_;
};

// Medusa's: which nodes there are is listed, each by the ranks of the tokens on its path among their siblings
// (2401.10774); siblings are drafted in the order of their ranks.
class ChoicesTreePolicy final : public TreePolicy {
 public:
  // Precondition: check_tree_choices().
  explicit ChoicesTreePolicy(std::span<const std::vector<int>> choices);
  int plan_level(const TreeLevel& level, std::span<const double> scores,
                 std::vector<int>& frontier) const override;
  int children_of(const TokenTree& tree, int node, int max) const override;

 private:
  int place_of(const TokenTree& tree, int node) const;

  std::vector<std::vector<int>> children_;  // by place in the list, the root first: places by rank
};

// As options.tree.kind says.
std::unique_ptr<TreePolicy> make_tree_policy(const SpeculativeOptions& options);

// Nodes of the largest tree that drafters of such options grow, all those that share it together.
int largest_tree(const SpeculativeOptions& options);

}  // namespace outrider
