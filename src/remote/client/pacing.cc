// SPDX-License-Identifier: Apache-2.0
#include "remote/client/pacing.h"

#include <cstdint>
#include <vector>

namespace outrider {

void ServerTime::learn(double nodes, double ms) {
  constexpr double kMaxSurprise = 2;  // a time counts as at most this multiple of the expected one
  if (line_.weight() >= 2) ms = std::min(ms, kMaxSurprise * line_.ms_of(std::max(nodes, line_.mean_count())));
  line_.learn(nodes, ms);
}

void Pacing::on_verdict(const TokenTree& tree, std::span<const TokenId> tokens, const Round& round) {
  estimates_.learn(tree, tokens);
  if (rounds_ > 0) server_.learn(tree.drafted(), round.server_ms);  // the first one includes the prompt
  waited_ms_ = round.waited_ms;
  tokens_ = kKept * tokens_ + static_cast<double>(tokens.size());
  rounds_ms_ = kKept * rounds_ms_ + round.round_ms;
  ++rounds_;
}

void Pacing::prune(TokenTree& tree) const {
  const double price = rate() * row_ms();
  std::vector<double> reached(static_cast<size_t>(tree.size()), 1.0);
  std::vector<uint8_t> kept(reached.size(), 1);
  size_t likeliest = 0;
  for (int node = 1; node < tree.size(); ++node) {
    const auto at = static_cast<size_t>(node);
    reached[at] = reached[static_cast<size_t>(tree.parent(node))] *
                  estimates_.estimate(tree.depth(node), tree.probability(node));
    kept[at] = reached[at] >= price;
    if (likeliest == 0 || reached[at] > reached[likeliest]) likeliest = at;
  }
  kept[likeliest] = 1;
  tree.keep(kept);
}

}  // namespace outrider
