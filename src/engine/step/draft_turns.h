// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

namespace outrider {

// Decides whether the sequences of a batch take turns: the drafts of one half are made by other ranks while
// the target verifies the other half. That pays where drafting takes long beside a pass, or a pass over half
// of the rows is much shorter. Both ways are measured, and the better one is kept.
class DraftTurns {
 public:
  bool are_taken() const { return are_taken_; }

  // A step of several sequences that drafted committed so many tokens in that time.
  void learn(double tokens, double ms);

 private:
  static constexpr int kSteps = 16;   // of a measurement
  static constexpr int kRepeat = 16;  // measurements after which the other way is tried again

  // Whether the next measurement is one with turns.
  bool next_way();
  double& rate(bool with_turns) { return rates_[with_turns ? 1 : 0]; }

  bool are_taken_ = false;
  std::array<double, 2> rates_ = {};  // tokens per millisecond without and with turns; 0: not yet known
  int measurements_ = 0;
  int steps_ = 0;  // of this measurement; the first one after a change has drafts of the other way
  double tokens_ = 0;
  double ms_ = 0;
};

}  // namespace outrider
