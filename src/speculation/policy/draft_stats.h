// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

namespace outrider {

// Steps that others' experience counts for, once a sequence learns from its own.
inline constexpr double kStepsOfPrior = 4.0;
// Steps that drafting goes on for once it begins, until it is known.
inline constexpr double kStepsOfRun = 16.0;

// A fading mean of times, as they would be at pace 1 of the machine (StepCosts); a stalled thread is no news.
struct DraftTime {
  double ms = 0.0;
  double steps = 0.0;  // that it is learned from

  void learn(double new_ms);
};

// Likewise of what a drafter first reads after a pause: a line by its length.
class ReadingTime {
 public:
  double ms_of(double tokens) const;
  void learn(double new_ms, double new_tokens);
  void be_prior() { steps_ = std::min(steps_, kStepsOfPrior); }

 private:
  double slope() const;

  double steps_ = 0.0;                        // that it is learned from
  double ms_ = 0.0, tokens_ = 0.0;            // means
  double variance_ = 0.0, covariance_ = 0.0;  // of tokens, and of both
};

// Fading means of what drafting brings and costs per step, of one sequence or of all.
struct DraftStats {
  double steps = 0.0;
  double gain = 0.0;         // tokens beyond the one that plain decoding gives
  double variance = 1.0;     // of what a step gains
  double rows = 0.0;         // verified beyond the pending token
  DraftTime draft;           // if no other sequence drafted
  ReadingTime reading;       // beyond that after a pause
  double run = kStepsOfRun;  // steps with a draft from there to the end of the sequence
  double runs = 0.0;         // that it is learned from

  // Of `gain`, as it was learned from so many steps.
  double variance_of_gain() const { return variance / std::max(1.0, steps); }

  void learn(double new_gain, double new_rows);
  void learn_run(double new_steps);
  // From here on counts little beside what is learned next.
  void be_prior();
  // What a sequence learned fades into what all learn, while it does not draft.
  void fade_into(const DraftStats& all);
};

// What a step brings and takes if some sequences draft as they did so far.
struct DraftForecast {
  double drafting = 0.0;  // sequences
  double tokens = 0.0;    // of the whole batch
  double rows = 0.0;      // drafted
  double draft_ms = 0.0;  // if each drafted alone, at pace 1
  double steps = 0.0;     // that it is learned from
  double variance = 0.0;  // of `tokens`

  // unread: tokens that the drafter reads first, paid for over a whole run; 0: without a pause.
  void add(const DraftStats& one, double unread) { change(one, unread, 1.0); }
  void remove(const DraftStats& one, double unread) { change(one, unread, -1.0); }
  // The same, if chance made what was learned too low: by one deviation of a sum of that variance.
  DraftForecast at_best(double sum_variance) const;

 private:
  void change(const DraftStats& one, double unread, double sign);
};

}  // namespace outrider
