// SPDX-License-Identifier: Apache-2.0
#include "speculation/speculation_policy.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace outrider {
namespace {

constexpr double kStepsRemembered = 48.0;  // of one sequence
constexpr double kTimesRemembered = 24.0;  // the first ones run on cold caches
constexpr double kStepsOfPrior = 4.0;      // that the others' experience counts for
constexpr double kStepsToJudge = 12.0;
constexpr double kStepsToTrust = 24.0;  // of all sequences, to judge a new one by
constexpr double kHopeless = 0.9;       // of plain speed: not worth a new sequence's own account
constexpr double kDoubt = 1.0;          // tokens: about what one step differs from the mean
// Of the accounts, in tokens.
constexpr double kFirstBalance = 3.5;
constexpr double kLargestBalance = 6.0;
constexpr double kMostLost = 2.0;         // by one step
constexpr double kIncome = 0.01;          // of the tries, per plain step
constexpr double kPromisedIncome = 0.06;  // of a sequence, where drafting should pay by all that is known
constexpr double kPriceOfTry = 1.0;

}  // namespace

void SpeculationPolicy::Means::learn(double new_gain, double new_rows) {
  steps = std::min(steps + 1.0, kStepsRemembered);
  gain += (new_gain - gain) / steps;
  rows += (new_rows - rows) / steps;
}

// A stalled thread is no news about the drafter.
void SpeculationPolicy::Means::learn_time(double new_draft_ms) {
  constexpr double kMostSurprise = 2.0;
  timed_steps = std::min(timed_steps + 1.0, kTimesRemembered);
  if (timed_steps > 1.0) new_draft_ms = std::min(new_draft_ms, kMostSurprise * draft_ms);
  draft_ms += (new_draft_ms - draft_ms) / timed_steps;
}

SpeculationPolicy::SpeculationPolicy(const Options& options, PassCosts costs)
    : options_(options), costs_(std::move(costs)) {
  options_.is_auto = options_.is_auto && !costs_.empty();
}

SpeculationPolicy::State& SpeculationPolicy::state_of(uint64_t sequence) {
  const auto [found, is_new] = states_.try_emplace(sequence);
  State& state = found->second;
  if (is_new) {
    state.estimates = AcceptanceEstimates(&all_estimates_);
    state.means = all_means_;
    state.means.steps = std::min(all_means_.steps, kStepsOfPrior);
    state.means.timed_steps = std::min(all_means_.timed_steps, kStepsOfPrior);
    state.length = options_.max_depth;
    const bool is_hopeless = all_means_.steps >= kStepsToTrust &&
                             (1.0 + all_means_.gain) / drafting_ms(all_means_) < kHopeless / plain_ms();
    state.balance = kFirstBalance;
    state.is_on = !is_hopeless;
  }
  return state;
}

double SpeculationPolicy::plain_ms() const {
  return costs_.pass_ms(load_.rows, load_.context) +
         (plain_rest_ms_ > 0.0 ? plain_rest_ms_ : drafting_rest_ms_);
}

// Of a step in which one sequence drafts as it did so far; the others as they are.
double SpeculationPolicy::drafting_ms(const Means& means) const {
  return costs_.pass_ms(load_.rows + means.rows, load_.context) + means.draft_ms +
         (drafting_rest_ms_ > 0.0 ? drafting_rest_ms_ : plain_rest_ms_);
}

// Whether this sequence drafts in this step.
bool SpeculationPolicy::decide(State& state) {
  const Means& means = state.means;
  const double plain = load_.sequences / plain_ms();
  const double drafted = (load_.sequences + means.gain) / drafting_ms(means);
  // What a few steps brought says little: only what is too bad for chance ends drafting.
  const double doubt = kDoubt / std::sqrt(std::max(1.0, means.steps));
  const double at_best = (load_.sequences + means.gain + doubt) / drafting_ms(means);
  if (means.steps >= kStepsToJudge && at_best < plain) state.is_on = false;
  if (drafted > plain) state.is_on = true;
  state.is_try = !state.is_on;
  double& balance = state.is_try ? try_balance_ : state.balance;
  if (balance >= (state.is_try ? kPriceOfTry : 0.0)) return true;
  balance += state.is_try ? kIncome : kPromisedIncome;
  return false;
}

void SpeculationPolicy::plan(const StepLoad& load, std::span<Draft> drafts) {
  constexpr double kFading = 0.05;
  load_ = load;
  for (Draft& draft : drafts) {
    State& state = state_of(draft.sequence);
    state.drafted.reset(0);
    if (options_.schedule == LengthSchedule::kHeuristic) draft.depth = std::min(draft.depth, state.length);
    state.is_auto = draft.is_auto.value_or(options_.is_auto) && !costs_.empty();
    if (!state.is_auto) continue;
    if (!decide(state)) {
      draft.depth = 0;
      state.has_just_drafted = false;
      continue;
    }
    const double rate = std::max(1.0 / plain_ms(), (1.0 + state.means.gain) / drafting_ms(state.means));
    rate_ = rate_ == 0.0 ? rate : rate_ + kFading * (rate - rate_);
    draft.rate = rate_;
    draft.estimates = &state.estimates;
  }
}

void SpeculationPolicy::prune(std::span<const Grown> trees) {
  if (costs_.empty()) return;
  candidates_.clear();
  double rows = load_.rows;
  for (size_t i = 0; i < trees.size(); ++i) {
    const TokenTree& tree = *trees[i].tree;
    State& state = state_of(trees[i].sequence);
    if (state.is_auto) state.drafted = tree;
    if (!state.is_auto || !trees[i].may_drop) {
      rows += tree.drafted();
      continue;
    }
    products_.assign(1, 1.0);
    for (int node = 1; node < tree.size(); ++node) {
      products_.push_back(products_[static_cast<size_t>(tree.parent(node))] *
                          state.estimates.estimate(tree.depth(node), tree.probability(node)));
      candidates_.push_back({products_.back(), i, node});
    }
  }
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    if (a.probability != b.probability) return a.probability > b.probability;
    return a.tree != b.tree ? a.tree < b.tree : a.node < b.node;
  });
  // Keep as many nodes as bring the most beyond what their time is worth.
  const double rate = rate_ * load_.sequences;
  size_t kept = 0;
  double sum = 0.0;
  double best = -rate * costs_.pass_ms(rows, load_.context);
  for (size_t count = 1; count <= candidates_.size(); ++count) {
    sum += candidates_[count - 1].probability;
    const double value = sum - rate * costs_.pass_ms(rows + static_cast<double>(count), load_.context);
    if (value <= best) continue;
    best = value;
    kept = count;
  }
  if (kept == candidates_.size()) return;
  for (size_t i = 0; i < trees.size(); ++i) {
    if (!trees[i].may_drop || !state_of(trees[i].sequence).is_auto) continue;
    kept_.assign(static_cast<size_t>(trees[i].tree->size()), 0);
    for (size_t j = 0; j < kept; ++j) {
      if (candidates_[j].tree == i) kept_[static_cast<size_t>(candidates_[j].node)] = 1;
    }
    trees[i].tree->keep(kept_);
  }
}

void SpeculationPolicy::observe(uint64_t sequence, const Verdict& verdict, int verified, double draft_ms) {
  State& state = state_of(sequence);
  const auto gain = static_cast<double>(verdict.tokens.size()) - 1.0;
  if (options_.schedule == LengthSchedule::kHeuristic) {
    const bool is_whole = std::cmp_equal(verdict.path.size(), state.length + 1);
    state.length = std::clamp(is_whole ? state.length + 2 : state.length - 1, 1, options_.max_depth);
  }
  if (!state.is_auto) return;
  state.estimates.learn(state.drafted, verdict.tokens);
  all_estimates_.learn(state.drafted, verdict.tokens);
  for (Means* means : {&all_means_, &state.means}) {
    means->learn(gain, verified);
    // A drafter that was not asked for a while first reads what it missed.
    if (state.has_just_drafted) means->learn_time(draft_ms);
  }
  // Reading the prompt, once, is what all later drafts of a sequence share; but a try may be the only one.
  constexpr double kMostSurprise = 1.5;
  const double known_ms = state.means.timed_steps > 0.0 ? state.means.draft_ms : draft_ms;
  const bool reads_prompt = std::exchange(state.is_first, false);
  if (!state.is_try) draft_ms = std::min(draft_ms, reads_prompt ? known_ms : kMostSurprise * known_ms);
  state.has_just_drafted = true;
  Means step = state.means;
  step.rows = verified;
  step.draft_ms = draft_ms;
  const double extra_ms = drafting_ms(step) - plain_ms();
  double& balance = state.is_try ? try_balance_ : state.balance;
  double won = gain - extra_ms / plain_ms();
  // One stalled draft is no verdict; a drafter that is always so slow shows in the means.
  if (!state.is_try) won = std::max(won, -kMostLost);
  balance = std::min(balance + won, kLargestBalance);
}

void SpeculationPolicy::observe_rest(bool has_drafted, double ms) {
  constexpr double kFading = 0.05;
  constexpr double kMostSurprise = 2.0;
  double& known = has_drafted ? drafting_rest_ms_ : plain_rest_ms_;
  known = known == 0.0 ? ms : known + kFading * (std::min(ms, kMostSurprise * known) - known);
}

void SpeculationPolicy::observe_pass(double rows, double context, double ms) {
  if (!costs_.empty()) costs_.learn(rows, context, ms);
}

}  // namespace outrider
