// SPDX-License-Identifier: Apache-2.0
#include "engine/step/draft_checks.h"

#include <algorithm>
#include <vector>

#include "sampling/token_mask.h"

namespace outrider {
namespace {

bool is_fine(const TokenTree& tree, int node, const DraftRequest& request, int64_t vocab_size) {
  return tree.depth(node) <= request.max_draft_len && tree.token(node) >= 0 && tree.token(node) < vocab_size;
}

// Whether so many children of the node, with this one, are within the limits.
bool may_have(int children, const DraftRequest& request) {
  return request.max_children == 0 || children <= request.max_children;
}

bool has_root(const TokenTree& tree, const DraftRequest& request) {
  return tree.size() > 0 && tree.token(0) == request.tokens.back();
}

bool has_draws(const TokenTree& tree) {
  return std::ranges::any_of(tree.proposals(),
                             [](const Proposal& proposal) { return proposal.distribution >= 0; });
}

}  // namespace

bool is_within_limits(const TokenTree& tree, const DraftRequest& request, int64_t vocab_size) {
  bool all_fine = has_root(tree, request) && tree.drafted() <= request.max_nodes;
  std::vector<int> children(request.max_children == 0 ? 0 : static_cast<size_t>(tree.size()), 0);
  for (int node = 1; node < tree.size() && all_fine; ++node) {
    all_fine = is_fine(tree, node, request, vocab_size);
    if (!children.empty()) all_fine &= may_have(++children[static_cast<size_t>(tree.parent(node))], request);
  }
  return all_fine;
}

TokenTree within_limits(const TokenTree& tree, const DraftRequest& request, int64_t vocab_size) {
  if (is_within_limits(tree, request, vocab_size)) return tree;
  const TokenId pending = request.tokens.back();
  if (!has_root(tree, request)) return TokenTree(pending);
  TokenTree cut = tree;
  std::vector<uint8_t> kept(static_cast<size_t>(tree.size()), 1);
  std::vector<int> children(kept.size(), 0);
  int drafted = 0;
  for (int node = 1; node < tree.size(); ++node) {
    uint8_t& stays = kept[static_cast<size_t>(node)];
    const auto parent = static_cast<size_t>(tree.parent(node));
    const bool has_room = drafted < request.max_nodes && may_have(children[parent] + 1, request);
    stays = kept[parent] != 0 && has_room && is_fine(tree, node, request, vocab_size) ? 1 : 0;
    drafted += stays;
    children[parent] += stays;
  }
  cut.keep(kept);
  return cut;
}

void cut_forbidden(TokenTree& tree, const DraftRequest& request) {
  if (request.constraint == nullptr) return;
  if (compares_distributions(request.acceptance) && has_draws(tree)) return;
  std::vector<TokenConstraint::State> states = {request.constraint_state};
  std::vector<uint8_t> kept = {1};
  for (int node = 1; node < tree.size(); ++node) {
    const auto parent = static_cast<size_t>(tree.parent(node));
    const ConstraintMove move = advanced(*request.constraint, states[parent], tree.token(node));
    states.push_back(move.state);
    kept.push_back(kept[parent] != 0 && move.is_allowed ? 1 : 0);
  }
  if (std::ranges::find(kept, uint8_t{0}) != kept.end()) tree.keep(kept);
}

}  // namespace outrider
