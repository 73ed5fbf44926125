// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "speculation/policy/pass_costs.h"

namespace outrider {

// Estimates the recent speedup: the time that plain decoding of the same tokens would have taken over the
// time taken. The time of a plain pass is the measured time of the step's pass, scaled by the ratio of both
// in `calibrated`, so that a machine that became slower or stalls slows both.
class SpeedupEstimate {
 public:
  static constexpr int kStepsLeftOut =
      16;                               // first steps, with cold caches and the drafters' prefill of prompts
  static constexpr int kMinSteps = 16;  // steps after these before value() is known

  explicit SpeedupEstimate(PassCosts calibrated) : costs_(std::move(calibrated)) {}

  struct Step {
    double rows = 1.0;           // rows of the target pass
    double context = 0.0;        // tokens of context that a row reads on average
    double pass_ms = 0.0;        // time of the target pass
    double plain_rows = 1.0;     // rows of the pass without drafts
    double plain_rest_ms = 0.0;  // time of a plain step without its pass
    double plain_steps = 1.0;    // plain steps that commit as many tokens
    double ms = 0.0;             // time of the whole step
  };
  void learn(const Step& step);

  // 0: not known yet.
  double value() const { return spent_ms_ > 0.0 && steps_ >= kLast ? plain_ms_ / spent_ms_ : 0.0; }

 private:
  static constexpr int kLast = kStepsLeftOut + kMinSteps;

  PassCosts costs_;
  int steps_ = 0;                           // steps seen, counted up to kLast
  double plain_ms_ = 0.0, spent_ms_ = 0.0;  // fading sums
};

}  // namespace outrider
