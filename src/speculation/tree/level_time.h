// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/fading_line.h"

namespace outrider {

// The time in ms that a drafter takes for one more level of one sequence, by the nodes that it expands there.
class LevelTime {
 public:
  double ms_of(double nodes) const { return line_.ms_of(nodes); }
  // The part of every node beyond the first.
  double ms_per_node() const { return line_.slope(); }
  bool is_known() const { return line_.weight() > 0.0; }

  // A time far above the usual one counts as twice that: its thread may have lost the processor.
  void learn(double nodes, double ms) {
    constexpr double kMaxSurprise = 2.0;
    line_.learn(nodes, is_known() ? std::min(ms, kMaxSurprise * line_.ms_of(nodes)) : ms);
  }

 private:
  FadingLine line_{/*max_weight=*/24.0, /*smoothing=*/0.5};
};

}  // namespace outrider
