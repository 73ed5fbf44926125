// SPDX-License-Identifier: Apache-2.0
#include "speculation/acceptance/verifier.h"

#include "speculation/acceptance/block_rule.h"
#include "speculation/acceptance/node_choice.h"

namespace outrider {
namespace {

// The target's own token after `node`, -1 where the distribution is empty.
TokenId own_token(const VerifyArgs& args, int node) {
  if (args.target_token) return args.target_token(node);
  const Distribution& distribution = args.target_distribution(node);
  return distribution.empty()
             ? -1
             : args.randomness->coupled_pick(distribution, args.position + args.tree->depth(node));
}

NodeChoice choose(const VerifyArgs& args, int node, bool is_thinking) {
  const TokenTree& tree = *args.tree;
  const int64_t position = args.position + tree.depth(node);
  if (args.rule == AcceptanceRule::kRejection) {
    const Distribution& distribution = args.target_distribution(node);
    return distribution.empty() ? NodeChoice{}
                                : choose_by_rejection({tree, node, distribution, position}, *args.randomness);
  }
  const TokenId own = own_token(args, node);
  if (own < 0) return {};
  if (args.rule == AcceptanceRule::kTypical)
    return choose_typical({tree, node, args.target_distribution(node), position}, *args.options, own);
  if (args.rule == AcceptanceRule::kRelaxed && is_thinking)
    return choose_relaxed({tree, node, args.untruncated_distribution(node), position}, *args.options, own);
  return choose_child(tree, node, own);
}

// Sets the fates of the node's children up to the accepted one. Returns whether there is a child.
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
  ThinkingPhase thinking = args.thinking;
  BlockRule block({*args.tree, args.target_distribution, args.position, args.randomness});
  const bool is_block = args.rule == AcceptanceRule::kBlock;
  for (int node = 0; node != kNoChild;) {
    const NodeChoice choice = is_block ? block.choose(node) : choose(args, node, thinking.is_open);
    thinking.push(choice.token);
    const bool drafted_here = set_fates(*args.tree, node, choice.accepted, verdict.fates);
    verdict.path.push_back(node);
    verdict.tokens.push_back(choice.token);
    verdict.origins.push_back(choice.accepted != kNoChild ? TokenOrigin::kAccepted
                                                          : origin_of_last(drafted_here, node != 0));
    node = choice.accepted;
  }
}

}  // namespace outrider
