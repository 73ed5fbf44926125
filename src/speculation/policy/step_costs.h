// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "speculation/policy/by_batch_size.h"
#include "speculation/policy/draft_stats.h"
#include "speculation/policy/pass_costs.h"

namespace outrider {

// The part of a step that does not depend on drafting.
struct BatchShape {
  double rows = 1.0;       // rows of the target pass without drafts: pending tokens and prompt chunks
  double context = 0.0;    // tokens of context that a row reads on average
  double sequences = 1.0;  // sequences that decode
};

// Predicts the time of a step from the steps that ran: the target pass, drafting, and the rest, which is
// everything else. Predictions are for the step begun last. Times are in ms, rates in tokens of the whole
// batch per ms.
class StepCosts {
 public:
  explicit StepCosts(PassCosts passes);

  bool known() const { return !passes_.empty(); }
  const PassCosts& passes() const { return passes_; }

  // Starts a step in which `may_draft` sequences may draft.
  void begin(const BatchShape& load, double may_draft);
  // Sets the number of sequences that draft in this step.
  void set_drafting(double sequences) { drafting_ = sequences; }
  double drafting() const { return drafting_; }
  const BatchShape& load() const { return load_; }

  // Precondition of the following functions: known(), and a sequence decodes.
  double pass_ms(double drafted_rows) const {
    return passes_.pass_ms(load_.rows + drafted_rows, load_.context);
  }
  // The time that a second drafted row of each sequence adds to the pass, for one of them.
  double second_row_ms() const { return (pass_ms(2.0 * drafting_) - pass_ms(drafting_)) / drafting_; }
  // A step without drafts and without rows of prompts. These rows have to be computed in any case, so that an
  // accepted token saves its part of such a step even where it is drafted beside a prompt.
  double plain_ms() const { return passes_.pass_ms(load_.sequences, load_.context) + plain_rest_ms_; }
  double plain_rate() const { return load_.sequences / plain_ms(); }
  // The rate of a step without rows of prompts, except that the price of a drafted row is this step's.
  double rate(const DraftForecast& forecast) const;
  // The machine's current slowness, see PassCosts::pace(). Draft times are stored divided by it ("at pace
  // 1").
  double pace() const { return passes_.pace(); }

  // The rest of a plain step, for all sequences together, and what drafting adds to the rest.
  double plain_rest_ms() const { return plain_rest_ms_; }
  double drafting_rest_ms() const { return drafting_rest_ms_ - plain_rest_ms_; }
  // The time of a draft when `drafting` sequences draft together, divided among them, over the time of a
  // single draft; in (0, 1].
  double share_of_batch(double drafting) const;

  void learn_pass(const PassCosts::Pass& pass);
  // `ms`: time of a step without drafting and the target pass.
  void learn_rest(bool has_drafted, double ms);
  // `draft_ms`: each drafting sequence's share of the drafting time; `alone_ms`: the time of its draft
  // without the others, both at pace 1.
  void learn_batching(double draft_ms, double alone_ms);

 private:
  PassCosts passes_;
  BatchShape load_;
  double drafting_ = 0.0;
  // The rest per sequence in plain and drafting steps, a fading mean, 0: not known; and the rest of all
  // sequences of this step.
  ByBatchSize<double> plain_rest_, drafting_rest_;
  double plain_rest_ms_ = 0.0, drafting_rest_ms_ = 0.0;
  // n sequences that draft together take n^(1 - batching_) times as long as one. Fading mean, and its value
  // when the step began.
  double batching_ = 0.5, step_batching_ = 0.5;
};

}  // namespace outrider
