// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/fading_line.h"

namespace outrider {

// Weight, in steps, of statistics that serve as the prior of a sequence.
inline constexpr double kPriorSteps = 4.0;
// Weight of earlier times, short because the first drafts run on cold caches.
inline constexpr double kMaxTimes = 24.0;
// Steps of a run of drafting, until the first run has ended.
inline constexpr double kInitialRunSteps = 16.0;

// Fading mean of the time that a draft takes, in ms at pace 1 of the machine (StepCosts::pace). A time far
// above the mean is a stalled thread and is capped.
struct DraftTime {
  double ms = 0.0;
  double steps = 0.0;  // weight of the mean, in steps

  void learn(double new_ms);
};

// Time that the drafter's prefill takes, in ms at pace 1: after a pause it first reads the tokens that it
// missed.
class PrefillTime {
 public:
  double ms_of(double tokens) const { return tokens == 0.0 ? 0.0 : line_.ms_of(tokens); }
  // Whether more than one reading was timed; a single one may be a stall.
  bool is_confirmed() const { return line_.weight() > 1.0; }
  void learn(double new_ms, double new_tokens);
  void become_prior() { line_.limit_weight(kPriorSteps); }

 private:
  // The few tokens missed in a short pause are read in one pass with the pending token; noise between short
  // pauses should not determine the slope.
  FadingLine line_{kMaxTimes, /*smoothing=*/16.0};
};

// Fading means of the gain and cost of drafting per step, for one sequence or for all.
struct DraftStats {
  double steps = 0.0;                   // weight of the means, in steps that drafted
  double gain = 0.0;                    // committed tokens beyond the one token of plain decoding
  double variance = 1.0;                // variance of the gain of one step
  double rows = 0.0;                    // verified rows beyond the pending token
  DraftTime draft;                      // time of a draft if no other sequence drafts
  PrefillTime prefill;                  // additional time of the first draft after a pause
  double run_steps = kInitialRunSteps;  // drafts from a pause to the end of a sequence
  double runs = 0.0;                    // weight of run_steps, in runs

  // Variance of the mean gain.
  double variance_of_gain() const { return variance / std::max(1.0, steps); }

  // Adds a step that drafted.
  void learn(double new_gain, double new_rows);
  // Adds a run that ended after `new_steps` drafts.
  void learn_run(double new_steps);
  // Reduces the weight of these statistics to the weight of a prior.
  void become_prior();
  // Moves the statistics of a sequence that does not draft towards the statistics of all sequences.
  void fade_into(const DraftStats& all);
};

// Expected tokens and cost of a step in which some sequences draft: the sum of their DraftStats.
struct DraftForecast {
  double drafting = 0.0;  // sequences that draft
  double tokens = 0.0;    // committed by the whole batch
  double rows = 0.0;      // drafted rows to verify
  double draft_ms = 0.0;  // sum of the times that the sequences take if each drafts by itself, at pace 1
  double steps = 0.0;     // sum of the weights of the statistics
  double variance = 0.0;  // variance of `tokens` as an estimate

  // prefill_tokens: tokens that the drafter has to read first. Their time is spread over the steps of a run.
  void add(const DraftStats& one, double prefill_tokens) { change(one, prefill_tokens, 1.0); }
  void remove(const DraftStats& one, double prefill_tokens) { change(one, prefill_tokens, -1.0); }
  // The forecast with `tokens` raised by one standard deviation, an upper confidence bound.
  DraftForecast optimistic(double variance_of_tokens) const;

 private:
  void change(const DraftStats& one, double prefill_tokens, double sign);
};

}  // namespace outrider
