// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
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
// All sequences of a batch wait for its step: what a draft takes of its time costs the tokens that the whole
// batch gets in that time. Who gains least is left out as long as that makes the batch faster; if those who
// remain make it slower than plain decoding, nobody drafts.
// Each sequence has an account, in tokens: a step that drafts pays in what it brought beyond plain decoding
// of the same time, or takes out what it lost. Where drafting does not pay by all that is known, plain steps
// of all sequences pay a hundredth each into a common account that tries are paid from. Nothing is drafted on
// credit, so that a drafter that never helps costs little more than that hundredth, however long it fails.
// A new sequence begins with what those that ended have left.
// Sequences of a batch stand in for one another: they draft together as long as their accounts together
// allow.
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
    int depth = 0;                     // in: the limit; out: 0: not worth it
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
  // At most `most_rows` of nodes stay in all trees together, as far as those left alone allow it.
  void prune(std::span<const Grown> trees, int most_rows);
  // Whether prune() can cut the trees of this sequence, which plan() has seen.
  bool cuts(uint64_t sequence) { return state_of(sequence).is_auto; }

  // After the step: what became of the tree of a sequence that drafted, in the words of `verdict`; draft_ms:
  // its share of the time that drafting took.
  void observe(uint64_t sequence, const Verdict& verdict, int verified, double draft_ms);
  void observe_pass(double rows, double context, double ms);
  // What a step took besides drafting and the target pass.
  void observe_rest(bool has_drafted, double ms);
  // A step that only decoded: tokens committed, and all its time.
  void observe_step(double tokens, double ms);
  // Of late: time that plain decoding would have taken over time taken; 0: not known.
  double speedup() const { return spent_ms_ > 0.0 ? plain_equivalent_ms_ / spent_ms_ : 0.0; }
  void forget(uint64_t sequence);

  const PassCosts& costs() const { return costs_; }

 private:
  // A fading mean; a stalled thread is no news.
  struct Time {
    double ms = 0.0;
    double steps = 0.0;  // that it is learned from

    void learn(double new_ms);
  };
  // Fading means of what drafting brings and costs per step.
  struct Means {
    double steps = 0.0;
    double gain = 0.0;      // tokens beyond the one that plain decoding gives
    double variance = 1.0;  // of what a step gains
    double rows = 0.0;      // verified beyond the pending token
    Time draft;             // if no other sequence drafted
    Time resume;            // beyond that after a pause: the drafter first reads what it missed

    void learn(double new_gain, double new_rows);
    // From here on counts little beside what is learned next.
    void be_prior();
    // What a sequence learned fades into what all learn, while it does not draft.
    void fade_into(const Means& all);
  };
  // What a step brings and takes if some sequences draft.
  struct Outlook {
    double drafting = 0.0;  // sequences
    double tokens = 0.0;
    double rows = 0.0;      // drafted
    double draft_ms = 0.0;  // if each drafted alone
    double steps = 0.0;     // that it is learned from
    double variance = 0.0;  // of `tokens`

    // With one more sequence (sign: 1) that drafts as it did so far, or without (-1).
    void add(const Means& means, bool resumes, double sign);
  };
  static constexpr int kPause = 2;  // steps without a draft, after which the drafter has much to read
  struct State {
    AcceptanceEstimates estimates;
    TokenTree drafted;  // the last tree, before it was cut
    Means means;
    bool is_auto = false;
    bool is_on = true;
    bool is_try = false;      // this step's draft is paid from the common account
    bool is_run_new = false;  // drafted in the step before, after a pause: what drafting takes shows only now
    int idle = kPause;        // steps since it last drafted
    double balance = 0.0;     // tokens
    int length = 0;           // of the heuristic schedule

    bool resumes() const { return idle >= kPause; }
  };

  // A figure of batches by their size; those of like size share one.
  struct BySize {
    static constexpr size_t kSizes = 12;
    std::array<double, kSizes> known{};  // by the power of two that the size reaches
    static size_t index(double size);
    double& operator[](double size) { return known[index(size)]; }  // 0: never seen
    double operator[](double size) const { return known[index(size)]; }
    double nearest(double size) const;  // 0: none was ever seen
  };

  struct Asked {
    Draft* draft = nullptr;
    State* state = nullptr;  // of its sequence
  };

  State& state_of(uint64_t sequence);
  void prepare(const StepLoad& load);
  Means& all_means();
  bool is_hopeless();
  void weigh(State& state, Outlook& outlook) const;
  void choose(double plain_rate);
  bool decide(State& state);
  void learn_time(State& state, double draft_ms);
  void settle(State& state, double gain, int verified, double draft_ms);
  double share_of_batch(double drafting) const;
  double plain_ms() const;
  double rate_of(const Outlook& outlook) const;  // tokens per millisecond
  double plain_rate() const { return load_.sequences / plain_ms(); }

  // So often nothing is drafted, so that it stays known what plain decoding takes.
  static constexpr int kStepsToPlain = 100;

  Options options_;
  PassCosts costs_;
  AcceptanceEstimates all_estimates_;            // of all sequences, where a new one starts from
  std::array<Means, BySize::kSizes> all_means_;  // likewise, by the size of the batch
  std::unordered_map<uint64_t, State> states_;
  StepLoad load_;  // of this step
  // By sequences of the step, what it takes for each besides drafting and the pass; fading.
  BySize plain_rest_, drafting_rest_;
  double batching_ = 0.5;  // n that draft together take n^(1 - this) times what one takes; fading
  // Of this step's sequences together, besides drafting and the pass.
  double plain_rest_ms_ = 0.0, drafting_rest_ms_ = 0.0;
  std::vector<double> shares_;  // share_of_batch() by sequences, of this exponent:
  double shared_by_ = 0.0;
  std::vector<Asked> order_;  // scratch of plan(): those the policy decides about
  bool is_off_ = false;       // in this step nobody should draft
  double pool_ = 0.0;         // the balance of all that should
  int steps_since_plain_ = kStepsToPlain - 10;
  double drafting_ = 0.0;       // sequences that may draft in this step, then those that did
  double resuming_ = 0.0;       // of these, after a pause
  double verified_rows_ = 0.0;  // of their trees
  bool may_try_ = false;        // the tries of this step are paid for
  double try_balance_ = 0.0;    // tokens, of all sequences
  double purse_ = 20.0;         // tokens, left by sequences that ended, for those that begin
  double advantage_ = 1.0;      // of the better of both ways over plain decoding, fading
  double plain_equivalent_ms_ = 0.0, spent_ms_ = 0.0;  // of late
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
