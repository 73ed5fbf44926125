// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "outrider/engine.h"

namespace outrider {

// A text about one step: a summary line and the drafted tree, indented, with the probabilities of drafter and
// target and the fate of every node.
std::string tree_view(const Engine& engine, const StepTrace& trace, bool colour);

// A line that explains the marks and letters.
std::string tree_legend();

}  // namespace outrider
