// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "speculation/policy/pass_costs.h"

namespace outrider {

// Of late: time that plain decoding would have taken over time taken. What this step's pass took tells how
// fast the machine is now, and `calibrated` what a plain pass takes beside it: a machine that became slower
// or stalls, slows both ways.
class SpeedupEstimate {
 public:
  static constexpr int kStepsLeftOut =
      16;                               // the first ones: caches are cold, and drafters read whole prompts
  static constexpr int kMinSteps = 16;  // beyond these, to say anything

  explicit SpeedupEstimate(PassCosts calibrated) : costs_(std::move(calibrated)) {}

  struct Step {
    double rows = 1.0;  // of its target pass
    double context = 0.0;
    double pass_ms = 0.0;
    double plain_rows = 1.0;     // of the pass without drafts
    double plain_rest_ms = 0.0;  // what a plain step takes besides
    double plain_steps = 1.0;    // that commit as many tokens
    double ms = 0.0;             // of all this step
  };
  void learn(const Step& step);

  double value() const {
    return spent_ms_ > 0.0 && steps_ >= kLast ? plain_ms_ / spent_ms_ : 0.0;
  }  // 0: not known

 private:
  static constexpr int kLast = kStepsLeftOut + kMinSteps;

  PassCosts costs_;
  int steps_ = 0;                           // that were seen, kLast: at least
  double plain_ms_ = 0.0, spent_ms_ = 0.0;  // fading
};

}  // namespace outrider
