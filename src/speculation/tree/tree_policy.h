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

// The state of a tree before its next level is drafted.
struct TreeLevel {
  const TokenTree* tree = nullptr;
  int depth = 0;            // depth of the nodes to expand; 0 is the root's
  int remaining_nodes = 0;  // nodes that may still be added
  int remaining_depth = 0;  // levels that may still be added, this level included
  // False where nodes are drawn from distributions that the acceptance rule tests, so that none may be
  // dropped.
  bool may_drop = true;
};

// Decides the shape of trees that grow level by level: which nodes are expanded and how many children each
// gets. An implementation keeps no state of a tree, so that one serves all sequences.
class TreePolicy {
 public:
  virtual ~TreePolicy() = default;

  // `frontier` holds the nodes drafted last. Removes nodes that are not expanded and returns the largest
  // number of children a remaining node gets; 0 ends the tree. Here scores[node] is the estimated probability
  // that the whole path to the node is accepted.
  virtual int plan_level(const TreeLevel& level, std::span<const double> scores,
                         std::vector<int>& frontier) const = 0;

  // The number of children of one frontier node, at most `max`, the result of plan_level().
  virtual int children_of(const TokenTree& /*tree*/, int /*node*/, int max) const { return max; }

  // Whether more nodes are drafted than kept; the likeliest are kept then (TopNodes).
  virtual bool drops() const { return false; }

  // The largest number of expanded nodes, without the root, in a tree of `nodes` kept nodes and `levels`
  // levels.
  virtual int max_expanded(int nodes, int /*levels*/) const { return nodes; }

  // The usual number of nodes expanded per level in a tree of `nodes` nodes. A tree may exceed it if its
  // nodes must not be dropped.
  virtual int usual_width(int nodes) const { return nodes; }
};

// SpecInfer's expansion vector (2305.09781, section 3): every node of level i gets expansion[i] children, and
// the tree ends after the last entry. A chain is a vector of ones.
class StaticTreePolicy final : public TreePolicy {
 public:
  explicit StaticTreePolicy(std::vector<int> expansion) : expansion_(std::move(expansion)) {}
  int plan_level(const TreeLevel& level, std::span<const double> scores,
                 std::vector<int>& frontier) const override;
  int usual_width(int nodes) const override;

 private:
  std::vector<int> expansion_;
};

// EAGLE-2's dynamic tree (2406.16858): in every level the `width` likeliest nodes are expanded with `width`
// children each. In the end the likeliest nodes of the whole tree are kept; ties go to the node drafted
// first. Where nodes must not be dropped, each level gets an equal share of the remaining node budget, which
// goes to its likeliest nodes.
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

// Medusa's fixed tree (2401.10774): every node is listed by the ranks of the tokens on its path among their
// siblings. Siblings are drafted in the order of their ranks.
class ChoicesTreePolicy final : public TreePolicy {
 public:
  // Precondition: check_tree_choices().
  explicit ChoicesTreePolicy(std::span<const std::vector<int>> choices);
  int plan_level(const TreeLevel& level, std::span<const double> scores,
                 std::vector<int>& frontier) const override;
  int children_of(const TokenTree& tree, int node, int max) const override;

 private:
  int index_of(const TokenTree& tree, int node) const;

  std::vector<std::vector<int>> children_;  // by index in the sorted list, 0 for the root: indices by rank
};

// Makes the policy that options.tree.kind names.
std::unique_ptr<TreePolicy> make_tree_policy(const SpeculativeOptions& options);

// The largest number of nodes, without the root, in a tree that drafters with these options grow; drafters
// that share a tree are counted together.
int max_tree_nodes(const SpeculativeOptions& options);

}  // namespace outrider
