// SPDX-License-Identifier: Apache-2.0
#include "engine/step/draft_turns.h"

namespace outrider {

void DraftTurns::learn(double tokens, double ms) {
  if (steps_++ > 0) {
    tokens_ += tokens;
    ms_ += ms;
  }
  if (steps_ < kSteps) return;
  rate(are_taken_) = ms_ > 0 ? tokens_ / ms_ : 0;
  steps_ = 0;
  tokens_ = ms_ = 0;
  const bool better = rate(true) > rate(false);
  const bool is_new = rate(!are_taken_) == 0;
  are_taken_ = is_new || ++measurements_ % kRepeat == 0 ? !(is_new ? are_taken_ : better) : better;
}

}  // namespace outrider
