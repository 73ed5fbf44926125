// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "training/core/run_history.h"
#include "training/evaluation/acceptance_probe.h"

namespace outrider::training {

// What the page of a run says.
struct HeadReport {
  std::string kind;    // "eagle3"
  std::string target;  // its name
  const RunHistory& history;
  const std::vector<Baseline>& baselines;
  int64_t steps = 0;       // of the whole run
  int64_t parameters = 0;  // trained
};

// A page of its own: loss, acceptance over the run and by depth, against the baselines.
std::string render_head_report(const HeadReport& report);

}  // namespace outrider::training
