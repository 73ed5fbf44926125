// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "loadtest/answer_record.h"
#include "loadtest/load_test_plan.h"
#include "outrider/result.h"

namespace outrider {

// The measurements of one level.
struct LevelRecord {
  LoadTestLevel level = {};
  double duration_ms = 0;  // from the first request to the last answer
  int peak_concurrency = 0;
  std::vector<AnswerRecord> requests = {};  // in the order of their beginning; time 0 is the first one's
  std::optional<SpeculationCounts> server_speculation =
      {};  // difference of /metrics after and before the level
};

struct LoadTestOutcome {
  std::string model = {};
  bool is_interrupted = false;  // the last level is incomplete
  std::vector<LevelRecord> levels = {};
};

struct LoadTestProgress {
  LoadTestLevel level = {};
  double done = 0;  // fraction of the level, 0..1
};

// Runs all levels of the plan. Error: the server does not answer, or its answers cannot be measured. Requests
// that fail later are part of the outcome.
Result<LoadTestOutcome> run_load_test(const LoadTestPlan& plan,
                                      const std::function<void(const LoadTestProgress&)>& on_progress);

}  // namespace outrider
