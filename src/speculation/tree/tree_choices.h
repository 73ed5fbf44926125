// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "outrider/result.h"

namespace outrider {

// The nodes of a tree as Medusa lists them (2401.10774): [0, 2] is the third likeliest token after the
// likeliest token.
using TreeChoices = std::vector<std::vector<int>>;

// Fails for an empty list or node, more than 1024 nodes or 64 levels, a node listed twice, and a node without
// its parent or without the siblings that rank before it.
Status check_tree_choices(const TreeChoices& choices);

int depth_of(const TreeChoices& choices);  // levels below the root
// The nodes of the first `depth` levels, at most `count` of them.
TreeChoices first_choices(const TreeChoices& choices, int depth, size_t count);

// The tree mc_sim_7b_63 of Medusa's first release, for heads of unknown accuracy: 63 nodes, 4 levels.
const TreeChoices& published_choices();

// The `count` nodes with the largest product of accuracies on their path, largest first. Each
// accuracies[k][i] is the share of positions, in [0, 1], where rank i of head k is the target's token.
TreeChoices best_choices(std::span<const std::vector<double>> accuracies, size_t count);

}  // namespace outrider
