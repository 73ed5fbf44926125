// SPDX-License-Identifier: Apache-2.0
#include "speculation/proposal.h"

#include <algorithm>

#include "sampling/distribution.h"

namespace outrider {
namespace {

std::vector<TokenId> draw_without_replacement(const ProposalArgs& args) {
  std::vector<double> remaining = args.law->probabilities;
  const auto positive = [](double weight) { return weight > 0.0; };
  std::vector<TokenId> drawn;
  for (int draw = 0; draw < args.count && std::any_of(remaining.begin(), remaining.end(), positive); ++draw) {
    const size_t i = args.randomness->categorical(remaining, args.position, RandomPurpose::kDraft,
                                                  static_cast<uint64_t>(draw));
    drawn.push_back(args.law->tokens[i]);
    remaining[i] = 0.0;
  }
  return drawn;
}

}  // namespace

int propose(const ProposalArgs& args) {
  if (args.count <= 0 || !is_proper(*args.law)) return 0;
  args.tree->set_law(args.node, *args.law);
  if (args.count == 1 && args.rule == AcceptanceRule::kCoupled) {
    args.tree->add(args.node, args.randomness->coupled_pick(*args.law, args.position));
    return 1;
  }
  const std::vector<TokenId> tokens = args.rule == AcceptanceRule::kCoupled
                                          ? args.randomness->coupled_top(*args.law, args.position, args.count)
                                          : draw_without_replacement(args);
  for (const TokenId token : tokens) args.tree->add(args.node, token);
  return static_cast<int>(tokens.size());
}

}  // namespace outrider
