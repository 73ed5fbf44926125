// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/speedup_estimate.h"

#include <algorithm>
#include <cmath>

namespace outrider {

void SpeedupEstimate::learn(const Step& step) {
  constexpr double kRememberedMs = 10000.0;
  steps_ = std::min(steps_ + 1, kLast);
  if (costs_.empty() || steps_ <= kStepsLeftOut) return;
  const double pass_ms =
      step.pass_ms * costs_.pass_ms(step.plain_rows, step.context) / costs_.pass_ms(step.rows, step.context);
  const double kept = std::exp(-step.ms / kRememberedMs);
  plain_ms_ = kept * plain_ms_ + step.plain_steps * (pass_ms + step.plain_rest_ms);
  spent_ms_ = kept * spent_ms_ + step.ms;
}

}  // namespace outrider
