// SPDX-License-Identifier: Apache-2.0
#include "engine/step/draft_ways.h"

#include <algorithm>

namespace outrider {

DraftWays::DraftWays(DraftAhead ahead, bool has_turns) {
  for (const bool takes_turns : {false, true}) {
    if (takes_turns && !has_turns) continue;
    if (ahead != DraftAhead::kOn) ways_.push_back({{takes_turns, /*guesses=*/false}});
    if (ahead != DraftAhead::kOff) ways_.push_back({{takes_turns, /*guesses=*/true}});
  }
}

void DraftWays::learn(double tokens, double ms) {
  if (steps_++ > 0) {
    tokens_ += tokens;
    ms_ += ms;
  }
  if (steps_ < kSteps) return;
  ways_[current_].rate = ms_ > 0 ? tokens_ / ms_ : 0;
  steps_ = 0;
  tokens_ = ms_ = 0;
  current_ = next_way();
}

size_t DraftWays::next_way() {
  for (size_t other = 1; other < ways_.size(); ++other) {
    const size_t way = (current_ + other) % ways_.size();
    if (ways_[way].rate == 0) return way;
  }
  const auto best = static_cast<size_t>(std::ranges::max_element(ways_, {}, &Measured::rate) - ways_.begin());
  if (++measurements_ % kRepeat != 0) return best;
  retried_ = (retried_ + 1) % ways_.size();
  if (retried_ == best) retried_ = (retried_ + 1) % ways_.size();
  return retried_;
}

}  // namespace outrider
