// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "outrider/engine.h"

namespace outrider {

// Drafts that other ranks make while the target verifies.
struct DraftWay {
  // The drafts of one half of the batch, while the other half is verified. That pays where drafting takes
  // long beside a pass, or a pass over half of the rows is much shorter.
  bool takes_turns = false;
  // Drafts after likely verdicts (DraftRequest::may_guess). That pays where processors are free.
  bool guesses = false;
};

// Measures the ways in turn and keeps the fastest one.
class DraftWays {
 public:
  DraftWays(DraftAhead ahead, bool has_turns);

  const DraftWay& way() const { return ways_[current_].way; }

  // A step that drafted committed so many tokens in that time.
  void learn(double tokens, double ms);

 private:
  static constexpr int kSteps = 16;   // of a measurement
  static constexpr int kRepeat = 16;  // measurements after which another way is tried again

  struct Measured {
    DraftWay way;
    double rate = 0;  // tokens per millisecond; 0: not yet known
  };

  size_t next_way();

  std::vector<Measured> ways_;
  size_t current_ = 0;
  size_t retried_ = 0;  // the way that was tried again last
  int measurements_ = 0;
  int steps_ = 0;  // of this measurement; the first one after a change has drafts of the other way
  double tokens_ = 0;
  double ms_ = 0;
};

}  // namespace outrider
