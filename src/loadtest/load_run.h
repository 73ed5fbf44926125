// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "loadtest/answer_record.h"
#include "loadtest/load_plan.h"
#include "outrider/result.h"

namespace outrider {

// What one level brought.
struct LevelRecord {
  LoadLevel level = {};
  double duration_ms = 0;  // from the first request to the last answer
  int peak_concurrency = 0;
  std::vector<AnswerRecord> requests = {};  // in the order in which they began, which is time 0
  std::optional<SpeculationCounts> server_speculation = {};  // by /metrics before and after
};

struct LoadOutcome {
  std::string model = {};
  bool is_interrupted = false;  // the last level is not whole
  std::vector<LevelRecord> levels = {};
};

struct LoadProgress {
  LoadLevel level = {};
  double done = 0;  // of the level, 0..1
};

// Error: the server does not answer, or not in a form that can be measured. Requests that fail later are part
// of the outcome.
Result<LoadOutcome> run_load(const LoadPlan& plan,
                             const std::function<void(const LoadProgress&)>& on_progress);

}  // namespace outrider
