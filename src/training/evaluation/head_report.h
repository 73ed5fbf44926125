// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "training/core/run_history.h"
#include "training/evaluation/acceptance_probe.h"

namespace outrider::training {

// The contents of a run's page.
struct HeadReport {
  std::string kind;    // "eagle3"
  std::string target;  // name of the model
  const RunHistory& history;
  const std::vector<Baseline>& baselines;
  int64_t steps = 0;       // optimizer steps of the whole run
  int64_t parameters = 0;  // number of trained parameters
};

// Renders a self-contained HTML page: the loss, and acceptance over the run and by depth, with the baselines.
std::string render_head_report(const HeadReport& report);

}  // namespace outrider::training
