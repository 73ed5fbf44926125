// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "outrider/drafter.h"
#include "outrider/engine.h"
#include "outrider/token_tree.h"

namespace outrider {

// Makes room for those of trees of that depth.
void reserve_figures(SpeculationStats& stats, int64_t depth);

// Adds what became of one sequence's tree to the figures of its request, or of all.
void add_tree(SpeculationStats& stats, const TokenTree& tree, const Verdict& verdict);

}  // namespace outrider
