// SPDX-License-Identifier: Apache-2.0
#include "speculation/verifier.h"

#include "speculation/node_choice.h"

namespace outrider {
namespace {

NodeChoice choose(const VerifyArgs& args, int node) {
  const TokenTree& tree = *args.tree;
  if (args.target_token && args.rule == AcceptanceRule::kCoupled) {
    const TokenId token = args.target_token(node);
    return token < 0 ? NodeChoice{} : choose_child(tree, node, token);
  }
  const Distribution& law = args.target_law(node);
  if (law.empty()) return {};
  const ReachedNode reached{tree, node, law, args.position + tree.depth(node)};
  return args.rule == AcceptanceRule::kCoupled ? choose_coupled(reached, *args.randomness)
                                               : choose_by_rejection(reached, *args.randomness);
}

// Siblings after the accepted one are never looked at. Returns whether there is a child.
bool set_fates(const TokenTree& tree, int node, int accepted, std::vector<NodeFate>& fates) {
  int child = next_child(tree, node, node);
  const bool any = child != kNoChild;
  for (; child != kNoChild; child = next_child(tree, node, child)) {
    fates[static_cast<size_t>(child)] = child == accepted ? NodeFate::kAccepted : NodeFate::kRejected;
    if (child == accepted) break;
  }
  return any;
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
    const NodeChoice choice = choose(args, node);
    const bool drafted_here = set_fates(*args.tree, node, choice.accepted, verdict.fates);
    verdict.path.push_back(node);
    verdict.tokens.push_back(choice.token);
    verdict.origins.push_back(choice.accepted != kNoChild ? TokenOrigin::kAccepted
                                                          : origin_of_last(drafted_here, node != 0));
    node = choice.accepted;
  }
}

}  // namespace outrider
