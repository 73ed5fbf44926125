// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "engine/step/step_report.h"
#include "outrider/engine.h"

namespace outrider {

// Counts over all steps since the engine was opened.
struct StepTotals {
  int64_t steps = 0;
  int64_t rows = 0;  // rows of the forward passes
  SpeculationStats speculation;
};

// Adds the outcome of one tree.
void add_tree(const TokenTree& tree, const Verdict& verdict, SpeculationStats& stats);

// Makes room for the counts of trees of at most `max_draft_len` levels, so that add_step() does not allocate.
void reserve_statistics(SpeculationStats& stats, int64_t max_draft_len);

// Adds what a step did to the totals and to the completion of each of its sequences.
void add_step(const StepReport& report, const std::string& drafter, StepTotals& totals);

}  // namespace outrider
