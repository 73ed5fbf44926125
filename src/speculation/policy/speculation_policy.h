// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "outrider/drafter.h"
#include "outrider/engine.h"
#include "speculation/tree/acceptance_estimates.h"
#include "speculation/policy/by_batch_size.h"
#include "speculation/policy/draft_stats.h"
#include "speculation/policy/speculation_budget.h"
#include "speculation/policy/speedup_estimate.h"
#include "speculation/policy/step_costs.h"
#include "speculation/policy/tree_pruner.h"

namespace outrider {

// Decides, step by step and sequence by sequence, whether drafting pays and how much: so that tokens per
// second are the most that measured costs (StepCosts) and observed acceptance (DraftStats,
// AcceptanceEstimates) promise. Never changes what is accepted.
// All sequences of a batch wait for its step: what a draft takes of its time costs the tokens that the whole
// batch gets in that time. Who gains least is left out as long as that makes the batch faster; if those who
// remain make it slower than plain decoding, nobody drafts. What is drafted must be paid for
// (SpeculationBudget). Sequences of a batch stand in for one another: they draft together as long as their
// accounts together allow.
class SpeculationPolicy {
 public:
  struct Options {
    bool is_auto = false;  // else every sequence drafts as much as its limits allow
    LengthSchedule schedule = LengthSchedule::kConstant;
    int max_depth = 0;
    int max_nodes = 0;  // of the largest tree, below its root
  };
  // Without costs nothing is decided.
  SpeculationPolicy(const Options& options, PassCosts costs);
  SpeculationPolicy(const SpeculationPolicy&) = delete;
  SpeculationPolicy& operator=(const SpeculationPolicy&) = delete;

  // One sequence that may draft in this step; depth, rate and estimates are the answer, the last two only
  // where costs decide.
  struct Draft {
    uint64_t sequence = 0;
    int64_t tokens = 0;                // of the sequence so far
    int depth = 0;                     // in: the limit; out: 0: not worth it
    std::optional<bool> is_auto = {};  // unset: as the options say
    double rate = 0.0;
    const AcceptanceEstimates* estimates = nullptr;
  };
  void plan(const BatchShape& load, std::span<Draft> drafts);

  // Cuts the trees down to the nodes that are worth their rows. Trees whose draws must stay are left alone.
  struct Grown {
    uint64_t sequence = 0;
    TokenTree* tree = nullptr;
    bool may_drop = true;
  };
  // At most `max_rows` of nodes stay in all trees together, as far as those left alone allow it.
  void prune(std::span<const Grown> trees, int max_rows);
  // Whether prune() can cut the trees of this sequence, which plan() has seen.
  bool cuts(uint64_t sequence) const { return states_.at(sequence).is_auto; }

  // After the step: what became of the tree of a sequence that drafted, in the words of `verdict`; draft_ms:
  // its share of the time that drafting took.
  void observe(uint64_t sequence, const Verdict& verdict, int verified, double draft_ms);
  void observe_pass(double rows, double context, double ms);
  // What a step took besides drafting and the target pass.
  void observe_rest(bool has_drafted, double ms) { costs_.learn_rest(has_drafted, ms); }
  // A step that only decoded, after what was observed of its pass and the rest: tokens committed, and all its
  // time.
  void observe_step(double tokens, double ms);
  // Of late: time that plain decoding would have taken over time taken; 0: not known.
  double speedup() const { return speedup_.value(); }
  void forget(uint64_t sequence);

  const PassCosts& costs() const { return costs_.passes(); }

 private:
  static constexpr int kPause = 2;  // steps without a draft, after which the drafter has much to read
  struct State {
    AcceptanceEstimates estimates;
    TokenTree drafted;  // the last tree, before it was cut
    DraftStats stats;
    SpeculationBudget::Account account;
    bool is_auto = false;
    bool is_on = true;
    bool is_run_new = false;  // drafted in the step before, after a pause: what drafting takes shows only now
    int run = 0;              // drafts since the last pause
    int idle = kPause;        // steps since it last drafted
    double read = 0.0;        // tokens that the drafter has read
    double missed = 0.0;      // and that it has not
    int length = 0;           // of the heuristic schedule

    bool resumes() const { return idle >= kPause; }
    double unread() const { return resumes() ? missed : 0.0; }
  };
  struct Asked {
    Draft* draft = nullptr;
    State* state = nullptr;  // of its sequence
  };

  State& open(const Draft& draft);
  DraftStats& stats_of_all();
  bool is_hopeless(double unread);
  void weigh(State& state, DraftForecast& forecast) const;
  void choose(double plain_rate);
  bool decide(State& state);
  void learn(State& state, std::span<const TokenId> committed, int verified, double draft_ms);
  void learn_time(State& state, double draft_ms);
  double tokens_in(double ms) const;
  double won(double gain, int verified, double draft_ms) const;

  // So often nothing is drafted, so that it stays known what plain decoding takes.
  static constexpr int kStepsToPlain = 100;

  Options options_;
  StepCosts costs_;
  SpeculationBudget budget_;
  AcceptanceEstimates all_estimates_;  // of all sequences, where a new one starts from
  ByBatchSize<DraftStats> all_stats_;  // likewise
  std::unordered_map<uint64_t, State> states_;
  std::vector<Asked> order_;  // scratch of plan(): those the policy decides about
  bool is_off_ = false;       // in this step nobody should draft
  int steps_since_plain_ = kStepsToPlain - 10;
  double unread_ = 0.0;         // tokens, of all that draft in this step after a pause
  double verified_rows_ = 0.0;  // of all trees of this step
  double advantage_ = 1.0;      // of the better of both ways over plain decoding, fading
  SpeedupEstimate speedup_;
  SpeedupEstimate::Step last_;  // scratch of observe_pass() and observe_step()
  TreePruner pruner_;
};

}  // namespace outrider
