// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "outrider/engine.h"

namespace outrider {

// One step for people: a summary line and the drafted tree, indented, every node with the drafter's and the
// target's probability and what became of it.
std::string tree_view(const Engine& engine, const StepTrace& trace, bool colour);

// Explains marks and letters, one line.
std::string tree_legend();

}  // namespace outrider
