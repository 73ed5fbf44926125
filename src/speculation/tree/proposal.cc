// SPDX-License-Identifier: Apache-2.0
#include "speculation/tree/proposal.h"

#include <algorithm>

#include "sampling/distribution.h"

namespace outrider {
namespace {

std::vector<TokenId> draw(const ProposalArgs& args) {
  std::vector<double> remaining = args.distribution->probabilities;
  const auto positive = [](double weight) { return weight > 0.0; };
  std::vector<TokenId> drawn;
  for (int draw = 0; draw < args.count && std::any_of(remaining.begin(), remaining.end(), positive); ++draw) {
    const size_t i = args.randomness->categorical(remaining, args.position, RandomPurpose::kDraft,
                                                  args.first_draw + static_cast<uint64_t>(draw));
    drawn.push_back(args.distribution->tokens[i]);
    if (args.kind == ChildrenKind::kSampled) remaining[i] = 0.0;
  }
  return drawn;
}

}  // namespace

int propose(const ProposalArgs& args) {
  if (args.count <= 0 || !is_proper(*args.distribution)) return 0;
  const bool is_coupled = args.rule == AcceptanceRule::kCoupled;
  const std::vector<TokenId> tokens =
      is_coupled ? args.randomness->coupled_top(*args.distribution, args.position, args.count) : draw(args);
  args.tree->set_distribution(args.node, *args.distribution, is_coupled ? ChildrenKind::kSampled : args.kind);
  for (size_t i = 0; i < tokens.size(); ++i) {
    args.tree->add(args.node, tokens[i], i < args.probabilities.size() ? args.probabilities[i] : 1.0);
  }
  return static_cast<int>(tokens.size());
}

}  // namespace outrider
