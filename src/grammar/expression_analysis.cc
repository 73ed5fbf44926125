// SPDX-License-Identifier: Apache-2.0
#include "grammar/expression_analysis.h"

#include <functional>

namespace outrider {
namespace {

using Kind = GrammarBuilder::Kind;
using Node = GrammarBuilder::Node;

// Calls `visit` with every part of `node`.
template <typename Visit>
void for_parts(const GrammarBuilder& builder, const Node& node, const Visit& visit) {
  if (node.kind == Kind::kReference) {
    visit(builder.rules()[node.index].body);
  } else {
    for (const GrammarExpr part : node.parts) visit(part);
  }
}

// The expressions that contain expression i as a part: list[begin[i], begin[i + 1]).
struct Parents {
  std::vector<int32_t> begin;
  std::vector<GrammarExpr> list;
};

Parents find_parents(const GrammarBuilder& builder) {
  const std::vector<Node>& nodes = builder.nodes();
  Parents parents;
  parents.begin.assign(nodes.size() + 2, 0);
  for (const Node& node : nodes) {
    for_parts(builder, node, [&](GrammarExpr part) { ++parents.begin[part + 2]; });
  }
  for (size_t i = 2; i < parents.begin.size(); ++i) parents.begin[i] += parents.begin[i - 1];
  parents.list.resize(parents.begin.back());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for_parts(builder, nodes[i], [&](GrammarExpr part) {
      parents.list[parents.begin[part + 1]++] = static_cast<GrammarExpr>(i);
    });
  }
  return parents;
}

// The smallest set that contains every expression of which at least needed(expression) parts are in the set;
// 0 means that the expression is in the set by itself.
std::vector<bool> min_set(const GrammarBuilder& builder, const Parents& parents,
                          const std::function<int32_t(const Node&)>& needed) {
  const std::vector<Node>& nodes = builder.nodes();
  std::vector<int32_t> missing(nodes.size());
  std::vector<bool> holds(nodes.size(), false);
  std::vector<GrammarExpr> found;
  for (size_t i = 0; i < nodes.size(); ++i) {
    missing[i] = needed(nodes[i]);
    if (missing[i] == 0) {
      holds[i] = true;
      found.push_back(static_cast<GrammarExpr>(i));
    }
  }
  while (!found.empty()) {
    const GrammarExpr part = found.back();
    found.pop_back();
    for (int32_t i = parents.begin[part]; i < parents.begin[part + 1]; ++i) {
      const GrammarExpr parent = parents.list[i];
      if (holds[parent] || --missing[parent] > 0) continue;
      holds[parent] = true;
      found.push_back(parent);
    }
  }
  return holds;
}

}  // namespace

ExpressionFacts analyse_expressions(const GrammarBuilder& builder) {
  const Parents parents = find_parents(builder);
  const auto of_parts = [](const Node& node) {
    if (node.kind == Kind::kSequence) return static_cast<int32_t>(node.parts.size());
    if (node.kind == Kind::kRepeat && node.min == 0) return 0;
    return 1;
  };
  ExpressionFacts facts;
  facts.is_productive = min_set(builder, parents, [&](const Node& node) {
    switch (node.kind) {
      case Kind::kBytes:
        return builder.byte_sets()[node.index].any() ? 0 : 1;
      case Kind::kCharacters:
        return builder.character_sets()[node.index].is_empty() ? 1 : 0;
      case Kind::kLiteral:
        return 0;
      default:
        return of_parts(node);
    }
  });
  facts.is_nullable = min_set(builder, parents, [&](const Node& node) {
    const bool is_terminal =
        node.kind == Kind::kBytes || node.kind == Kind::kCharacters || node.kind == Kind::kLiteral;
    return is_terminal ? 1 : of_parts(node);
  });
  return facts;
}

}  // namespace outrider
