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
  are_taken_ = next_way();
}

bool DraftTurns::next_way() {
  const bool other = !are_taken_;
  if (rate(other) == 0) return other;  // not yet known
  const bool better = rate(true) > rate(false);
  const bool is_tried_again = ++measurements_ % kRepeat == 0;
  return is_tried_again ? !better : better;
}

}  // namespace outrider
