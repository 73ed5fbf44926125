// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "outrider/drafter.h"
#include "outrider/engine.h"
#include "speculation/acceptance_estimates.h"
#include "speculation/pass_costs.h"

namespace outrider {

// What a step computes whether or not anything is drafted.
struct StepLoad {
  double rows = 1.0;       // of the target pass: pending tokens and prompt chunks
  double context = 0.0;    // tokens a row reads, on average
  double sequences = 1.0;  // that grow
};

// Decides, step by step and sequence by sequence, whether drafting pays and how much: so that tokens per
// second are the most that measured costs and observed acceptance promise. Never changes what is accepted.
// Each sequence has an account, in tokens: a step that drafts pays in what it brought beyond plain decoding
// of the same time, or takes out what it lost. Where drafting does not pay by all that is known, plain steps
// of all sequences pay a hundredth each into a common account that tries are paid from. Nothing is drafted on
// credit, so that a drafter that never helps costs little more than that hundredth, however long it fails.
class SpeculationPolicy {
 public:
  struct Options {
    bool is_auto = false;  // else every sequence drafts as much as its limits allow
    LengthSchedule schedule = LengthSchedule::kConstant;
    int max_depth = 0;
  };
  // Without costs nothing is decided.
  SpeculationPolicy(const Options& options, PassCosts costs);
  SpeculationPolicy(const SpeculationPolicy&) = delete;
  SpeculationPolicy& operator=(const SpeculationPolicy&) = delete;

  // One sequence that may draft in this step; depth, rate and estimates are the answer, the last two only
  // where costs decide.
  struct Draft {
    uint64_t sequence = 0;
    int depth = 0;  // in: the limit; out: 0: not worth it
    std::optional<bool> is_auto = {};  // unset: as the options say
    double rate = 0.0;
    const AcceptanceEstimates* estimates = nullptr;
  };
  void plan(const StepLoad& load, std::span<Draft> drafts);

  // Cuts the trees down to the nodes that are worth their rows. Trees whose draws must stay are left alone.
  struct Grown {
    uint64_t sequence = 0;
    TokenTree* tree = nullptr;
    bool may_drop = true;
  };
  void prune(std::span<const Grown> trees);

  // After the step: what became of the tree of a sequence that drafted, in the words of `verdict`; draft_ms:
  // its share of the time that drafting took.
  void observe(uint64_t sequence, const Verdict& verdict, int verified, double draft_ms);
  void observe_pass(double rows, double context, double ms);
  // What a step took besides drafting and the target pass.
  void observe_rest(bool has_drafted, double ms);
  void forget(uint64_t sequence) { states_.erase(sequence); }

  const PassCosts& costs() const { return costs_; }

 private:
  // Fading means of what drafting brings and costs per step.
  struct Means {
    double steps = 0.0;
    double gain = 0.0;  // tokens beyond the one that plain decoding gives
    double rows = 0.0;  // verified beyond the pending token
    double timed_steps = 0.0;
    double draft_ms = 0.0;

    void learn(double new_gain, double new_rows);
    void learn_time(double new_draft_ms);
  };
  struct State {
    AcceptanceEstimates estimates;
    TokenTree drafted;  // the last tree, before it was cut
    Means means;
    bool is_auto = false;
    bool is_on = true;
    bool is_try = false;            // this step's draft is paid from the common account
    bool is_first = true;           // nothing was drafted yet
    bool has_just_drafted = false;  // in the step before: nothing is caught up on
    double balance = 0.0;           // tokens
    int length = 0;                 // of the heuristic schedule
  };

  State& state_of(uint64_t sequence);
  bool decide(State& state);
  double plain_ms() const;
  double drafting_ms(const Means& means) const;

  Options options_;
  PassCosts costs_;
  AcceptanceEstimates all_estimates_;  // of all sequences, where a new one starts from
  Means all_means_;
  std::unordered_map<uint64_t, State> states_;
  StepLoad load_;  // of this step
  // Of steps that draft nothing, and of those that do, besides drafting and the pass; fading. 0: none yet.
  double plain_rest_ms_ = 0.0, drafting_rest_ms_ = 0.0;
  double try_balance_ = 0.0;  // tokens, of all sequences
  double rate_ = 0.0;  // tokens per millisecond that a sequence gets by the better of both ways, fading
  // Scratch of prune().
  struct Candidate {
    double probability;  // that all nodes down to it are accepted
    size_t tree;
    int node;
  };
  std::vector<Candidate> candidates_;
  std::vector<double> products_;
  std::vector<uint8_t> kept_;
};

}  // namespace outrider
