// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "outrider/drafter.h"
#include "outrider/engine.h"
#include "speculation/policy/by_batch_size.h"
#include "speculation/policy/draft_stats.h"
#include "speculation/policy/speculation_budget.h"
#include "speculation/policy/speedup_estimate.h"
#include "speculation/policy/step_costs.h"
#include "speculation/policy/tree_pruner.h"
#include "speculation/tree/acceptance_estimates.h"

namespace outrider {

// The outcome of verifying the tree of one sequence that drafted.
struct DraftOutcome {
  uint64_t sequence = 0;
  bool is_predicted = false;
  const Verdict* verdict = nullptr;
  int verified = 0;  // drafted nodes that the target verified
};

// One step as the policy sees it at its end. Times are in milliseconds.
struct StepObservation {
  bool is_decoding = true;      // no row computed a prompt; the costs are learned only from such steps
  bool has_drafted = false;     // the drafter was called, even if it failed
  double rows = 0.0;            // rows of the target's pass
  double active_experts = 0.0;  // experts that the target's pass read in all layers
  double pass_ms = 0.0;         // time of the target's pass
  // Share of the time of drafting for each sequence that drafted; nullopt: not known, as the target's device
  // drafted within its pass.
  std::optional<double> draft_ms = 0.0;
  double rest_ms = 0.0;  // time outside of drafting and the target's pass
  double step_ms = 0.0;  // time of the whole step
  double tokens = 0.0;   // tokens committed by all sequences
  std::span<const DraftOutcome> outcomes = {};
};

// Decides in every step which sequences draft and how much, to maximise the expected tokens per second of the
// batch. The expectation comes from measured costs (StepCosts) and observed acceptance (DraftStats per
// sequence, AcceptanceEstimates per node). Never changes what is accepted. All sequences of a batch wait for
// its step, so the time of a draft costs the tokens that the whole batch commits in that time. Sequences with
// the smallest gain are left out as long as this makes the batch faster; if plain decoding is still faster,
// no sequence drafts. SpeculationBudget bounds the loss where these estimates are wrong. Drafts from the
// predictions of requests have estimates, statistics and accounts of their own: they say nothing about the
// drafter, nor the drafter about them.
class SpeculationPolicy {
 public:
  struct Options {
    bool is_auto = false;  // false: every sequence drafts as much as its limits allow
    LengthSchedule schedule = LengthSchedule::kConstant;
    int max_draft_len = 0;  // levels of the deepest tree
    int max_nodes = 0;      // nodes of the largest tree, without its root
    // Share of places at which the drafter proposes the target's likeliest token, as its files say; 0:
    // unknown.
    double agreement = 0.0;
  };
  // With empty `costs` every sequence drafts as much as its limits allow.
  SpeculationPolicy(const Options& options, PassCosts costs);
  SpeculationPolicy(const SpeculationPolicy&) = delete;
  SpeculationPolicy& operator=(const SpeculationPolicy&) = delete;

  // A sequence that may draft in this step. plan() sets max_draft_len, and for sequences that it decides
  // about also rate and estimates.
  struct Draft {
    uint64_t sequence = 0;
    bool is_predicted = false;         // its draft would come from the request's prediction
    int64_t tokens = 0;                // length of the sequence so far
    int max_draft_len = 0;             // in: the limit; out: levels to draft, 0: none
    std::optional<bool> is_auto = {};  // unset: Options::is_auto
    double rate = 0.0;                 // tokens per ms that another level must bring, see DraftRequest::rate
    double row_ms = 0.0;               // see DraftRequest::row_ms
    const AcceptanceEstimates* estimates = nullptr;
  };
  // Starts a step: decides which of the sequences draft. `max_rows` as for prune().
  void plan(const BatchShape& load, std::span<Draft> drafts, int max_rows);

  // Starts a step for which the last plan holds. The limits of `drafts` are levels that are drafted.
  void repeat(const BatchShape& load, std::span<const Draft> drafts);

  struct TreeSize {
    int levels = 0;
    int nodes = 0;
  };
  // The trees of a sequence with a rate, where nobody decides level by level until the next plan: the levels
  // of `most` that are expected to pay, but at least one. Each has an equal part of the nodes. row_ms: of the
  // plan. Precondition: `most` has a level.
  TreeSize size_until_next_plan(uint64_t sequence, const TreeSize& most, double row_ms) const;

  // A drafted tree; may_drop is false if the acceptance rule tests its draws, so that all nodes must stay.
  struct Grown {
    uint64_t sequence = 0;
    bool is_predicted = false;
    TokenTree* tree = nullptr;
    bool may_drop = true;
  };
  // Cuts the trees down to the nodes with expected tokens that are worth the time of their rows. At most
  // `max_rows` nodes stay in all trees together, unless the trees that must not be cut have more.
  void prune(std::span<const Grown> trees, int max_rows);
  // Whether prune() may cut the trees of this sequence. Precondition: plan() has seen it.
  bool cuts(uint64_t sequence, bool is_predicted) const {
    return states_.at(key(sequence, is_predicted)).is_auto;
  }

  // Learns from a step. Precondition: plan() or repeat() was called for it, and prune() if it has outcomes.
  void observe(const StepObservation& step);
  // Recent speedup over plain decoding (SpeedupEstimate); 0: not known yet.
  double speedup() const { return speedup_.value(); }
  void forget(uint64_t sequence);

  const PassCosts& costs() const { return costs_.passes(); }

 private:
  static constexpr int kPause = 2;  // steps without a draft after which drafting needs a prefill
  // Over all sequences.
  struct Experience {
    AcceptanceEstimates estimates = AcceptanceEstimates();  // the prior of each sequence
    ByBatchSize<DraftStats> stats = {};                     // the prior of a new sequence
  };
  // The state of one sequence, for its predicted drafts or for all others.
  struct State {
    Experience* all = nullptr;
    bool is_predicted = false;
    AcceptanceEstimates estimates;
    TokenTree drafted;  // the last tree, before it was cut
    DraftStats stats;
    SpeculationBudget::Account account;
    bool is_auto = false;
    bool should_draft = true;      // drafting is expected to pay
    bool is_first_of_run = false;  // the step before drafted for the first time after a pause
    int run = 0;                   // drafts since the last pause
    int idle = kPause;             // steps since the last draft
    double read = 0.0;             // tokens that the drafter has read
    double missed = 0.0;           // tokens that it has not read
    int draft_len = 0;             // length of the next draft by the heuristic schedule
    int planned_len = 0;           // as it was in the last plan

    bool resumes() const { return idle >= kPause; }
    void pause() {
      ++idle;
      is_first_of_run = false;
    }
    double prefill_tokens() const { return resumes() ? missed : 0.0; }
  };
  struct Candidate {
    Draft* draft = nullptr;
    State* state = nullptr;  // of its sequence
  };

  static uint64_t key(uint64_t sequence, bool is_predicted) { return 2 * sequence + (is_predicted ? 1 : 0); }
  State& open(const Draft& draft);
  void forget_state(uint64_t key);
  DraftStats& stats_of_all(Experience& all);
  bool expects_loss(Experience& all, double prefill_tokens);
  double trial(State& state, double prefill_tokens);
  void update_should_draft(State& state, DraftForecast& forecast) const;
  void choose_sequences(double plain_rate);
  bool may_draft(State& state);
  void limit_lengths(std::span<Draft> drafts, int max_rows);
  double price_of_row();
  void learn_outcome(const DraftOutcome& outcome, std::optional<double> draft_ms);
  void learn(State& state, std::span<const TokenId> committed, int verified, std::optional<double> draft_ms);
  void learn_time(State& state, double draft_ms);
  void learn_speedup(const StepObservation& step);
  double usual_draft_ms(const DraftStats& stats) const;
  double plain_tokens_in(double ms) const;
  double gain_over_plain(double gain, int verified, double draft_ms) const;

  // One step in this many is plain, which keeps the time of plain decoding up to date.
  static constexpr int kStepsToPlain = 100;

  Options options_;
  StepCosts costs_;
  SpeculationBudget budget_;
  Experience of_drafter_, of_predictions_;
  std::unordered_map<uint64_t, State> states_;  // by key()
  std::vector<Candidate> candidates_;  // scratch of plan(): the sequences that the policy decides about
  bool is_plain_better_ = false;       // in this step, according to the forecast
  int64_t priced_steps_ = 0;           // steps that may draft
  int steps_since_plain_ = kStepsToPlain - 10;
  double prefill_tokens_ = 0.0;  // tokens to read by all sequences that resume in this step
  double verified_rows_ = 0.0;   // nodes of all trees of this step after prune()
  double advantage_ = 1.0;       // expected rate over the rate of plain decoding, >= 1, fading mean
  SpeedupEstimate speedup_;
  TreePruner pruner_;
};

}  // namespace outrider
