// SPDX-License-Identifier: Apache-2.0
#include "engine/step_figures.h"

namespace outrider {

void reserve_figures(SpeculationStats& stats, int64_t depth) {
  stats.drafted_per_position.reserve(static_cast<size_t>(depth));
  stats.accepted_per_position.reserve(static_cast<size_t>(depth));
}

void add_tree(SpeculationStats& stats, const TokenTree& tree, const Verdict& verdict) {
  stats.steps += verdict.tokens.empty() ? 0 : 1;
  stats.drafts += tree.drafted() == 0 ? 0 : 1;
  stats.committed += static_cast<int64_t>(verdict.tokens.size());
  stats.drafted += tree.drafted();
  for (int node = 1; node < tree.size(); ++node) {
    const auto level = static_cast<size_t>(tree.depth(node) - 1);
    if (stats.drafted_per_position.size() <= level) {
      stats.drafted_per_position.resize(level + 1);
      stats.accepted_per_position.resize(level + 1);
    }
    const bool is_accepted = verdict.fates[static_cast<size_t>(node)] == NodeFate::kAccepted;
    ++stats.drafted_per_position[level];
    stats.accepted_per_position[level] += is_accepted ? 1 : 0;
    stats.accepted += is_accepted ? 1 : 0;
  }
}

}  // namespace outrider
