// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "outrider/result.h"

namespace outrider {

// Medusa's way to list the nodes of a tree: [0, 2] is the third likeliest token after the likeliest one.
using TreeChoices = std::vector<std::vector<int>>;

// Error: an empty list or node, more than 1024 nodes or 64 levels, one listed twice, one without its parent
// or without the siblings that rank before it.
Status check_tree_choices(const TreeChoices& choices);

int depth_of(const TreeChoices& choices);
// The nodes of the first `depth` levels, at most `count` of them.
TreeChoices first_choices(const TreeChoices& choices, int depth, size_t count);

// mc_sim_7b_63, which Medusa's first release ships for heads of unknown accuracy: 63 nodes, 4 levels.
const TreeChoices& published_choices();

// The `count` nodes with the largest product of accuracies on their path, largest first. accuracies[k][i]:
// how often the token of rank i of head k is the right one.
TreeChoices best_choices(std::span<const std::vector<double>> accuracies, size_t count);

}  // namespace outrider
