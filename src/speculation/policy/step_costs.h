// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "speculation/policy/by_batch_size.h"
#include "speculation/policy/draft_stats.h"
#include "speculation/policy/pass_costs.h"

namespace outrider {

// What a step computes whether or not anything is drafted.
struct BatchShape {
  double rows = 1.0;       // of the target pass: pending tokens and prompt chunks
  double context = 0.0;    // tokens a row reads, on average
  double sequences = 1.0;  // that grow
};

// What steps take, learned from those that ran: the target's pass, drafting together, and the rest. Answers
// are about the step begun last. Times in milliseconds, rates in tokens of the whole batch per millisecond.
class StepCosts {
 public:
  explicit StepCosts(PassCosts passes);

  bool known() const { return !passes_.empty(); }
  const PassCosts& passes() const { return passes_; }

  // A step begins, in which so many sequences may draft.
  void begin(const BatchShape& load, double may_draft);
  // So many draft in it.
  void set_drafting(double sequences) { drafting_ = sequences; }
  double drafting() const { return drafting_; }
  const BatchShape& load() const { return load_; }

  // Preconditions of these: known().
  double pass_ms(double drafted_rows) const {
    return passes_.pass_ms(load_.rows + drafted_rows, load_.context);
  }
  double plain_ms() const { return pass_ms(0.0) + plain_rest_ms_; }
  double plain_rate() const { return load_.sequences / plain_ms(); }
  double rate(const DraftForecast& forecast) const;
  // Of the machine; times of drafts are kept as they would be at pace 1.
  double pace() const { return passes_.pace(); }

  // Of all sequences together, what a plain step takes besides the pass, and what drafting adds besides
  // drafts and rows.
  double plain_rest_ms() const { return plain_rest_ms_; }
  double drafting_rest_ms() const { return drafting_rest_ms_ - plain_rest_ms_; }
  // Of what drafting takes by itself, what each takes if so many draft together.
  double share_of_batch(double drafting) const;

  void learn_pass(double rows, double context, double ms);
  // What a step took besides drafting and the pass.
  void learn_rest(bool has_drafted, double ms);
  // Those that drafted took draft_ms each; alone they take alone_ms, at the same pace.
  void learn_batching(double draft_ms, double alone_ms);

 private:
  PassCosts passes_;
  BatchShape load_;
  double drafting_ = 0.0;
  // Besides drafting and the pass: for each sequence of the batch, fading, 0: not known; and of all sequences
  // of this step.
  ByBatchSize<double> plain_rest_, drafting_rest_;
  double plain_rest_ms_ = 0.0, drafting_rest_ms_ = 0.0;
  // n that draft together take n^(1 - this) times what one takes; fading, and as it was when the step began.
  double batching_ = 0.5, step_batching_ = 0.5;
};

}  // namespace outrider
