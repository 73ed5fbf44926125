// SPDX-License-Identifier: Apache-2.0
#include "speculation/verifier.h"

#include "speculation/node_choice.h"

namespace outrider {
namespace {

std::vector<int> children_of(const TokenTree& tree, int node) {
  std::vector<int> children;
  for (int child = node + 1; child < tree.size(); ++child) {
    if (tree.parent(child) == node) children.push_back(child);
  }
  return children;
}

NodeChoice choose(const VerifyArgs& args, int node, std::span<const int> children) {
  const Distribution& law = args.target_law(node);
  if (law.empty()) return {};
  const ReachedNode reached{*args.tree, node, children, law, args.position + args.tree->depth(node)};
  return args.rule == AcceptanceRule::kCoupled ? choose_coupled(reached, *args.randomness)
                                               : choose_by_rejection(reached, *args.randomness);
}

// Siblings after the accepted one are never looked at.
void set_fates(std::span<const int> children, int accepted, std::vector<NodeFate>& fates) {
  for (const int child : children) {
    fates[static_cast<size_t>(child)] = child == accepted ? NodeFate::kAccepted : NodeFate::kRejected;
    if (child == accepted) return;
  }
}

TokenOrigin origin_of_last(bool drafted_here, bool drafted_before) {
  if (drafted_here) return TokenOrigin::kRecovered;
  return drafted_before ? TokenOrigin::kBonus : TokenOrigin::kPlain;
}

}  // namespace

void verify(const VerifyArgs& args, Verdict& verdict) {
  verdict.clear();
  verdict.fates.assign(static_cast<size_t>(args.tree->size()), NodeFate::kUnreached);
  verdict.fates[0] = NodeFate::kAccepted;
  for (int node = 0; node != kNoChild;) {
    const std::vector<int> children = children_of(*args.tree, node);
    const NodeChoice choice = choose(args, node, children);
    set_fates(children, choice.accepted, verdict.fates);
    verdict.path.push_back(node);
    verdict.tokens.push_back(choice.token);
    verdict.origins.push_back(choice.accepted != kNoChild ? TokenOrigin::kAccepted
                                                          : origin_of_last(!children.empty(), node != 0));
    node = choice.accepted;
  }
}

}  // namespace outrider
