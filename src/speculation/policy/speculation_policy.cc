// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/speculation_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace outrider {
namespace {

constexpr double kStepsToJudge = 12.0;
// Steps of all sequences to judge a new one by: if the outlook is too bad for chance, and in any case.
constexpr double kFewestSteps = 6.0;
constexpr double kStepsToTrust = 24.0;
// Of plain speed, over the sequences of the batch, which learn for one another: a new one that is expected to
// lose more waits for a try.
constexpr double kHopefulLoss = 0.03;

}  // namespace

SpeculationPolicy::SpeculationPolicy(const Options& options, PassCosts costs)
    : options_(options), costs_(costs), speedup_(std::move(costs)) {
  options_.is_auto = options_.is_auto && costs_.known();
}

SpeculationPolicy::State& SpeculationPolicy::open(const Draft& draft) {
  const auto [found, is_new] = states_.try_emplace(draft.sequence);
  State& state = found->second;
  if (is_new) {
    state.estimates = AcceptanceEstimates(&all_estimates_);
    state.stats = stats_of_all();
    state.stats.be_prior();
    state.length = options_.max_depth;
    state.account = budget_.open();
    state.is_on = !is_hopeless(static_cast<double>(draft.tokens));
    if (costs_.known()) state.drafted.reserve(1 + options_.max_nodes);
  }
  return state;
}

// What all sequences learned in batches like this one; in the first of its size, a little of what they
// learned in others.
DraftStats& SpeculationPolicy::stats_of_all() {
  const double size = costs_.load().sequences;
  DraftStats& own = all_stats_[size];
  if (own.steps > 0.0) return own;
  const auto is_known = [](const DraftStats& stats) { return stats.steps > 0.0; };
  if (const DraftStats* other = all_stats_.nearest(size, is_known)) {
    own = *other;
    own.be_prior();
  }
  return own;
}

// Whether a new sequence of so many tokens would lose too much by what all learned.
bool SpeculationPolicy::is_hopeless(double unread) {
  const DraftStats& all = stats_of_all();
  if (!costs_.known() || all.steps < kFewestSteps) return false;
  const double sequences = costs_.load().sequences;
  DraftForecast drafted{.tokens = sequences};
  drafted.add(all, unread);
  const double lost = costs_.plain_rate() * drafted.tokens / costs_.rate(drafted) - sequences;
  // As long as little is known, what is too bad for chance.
  const double chance = all.steps < kStepsToTrust ? std::sqrt(all.variance_of_gain()) : 0.0;
  return 1.0 + all.gain + chance < (1.0 - kHopefulLoss / sequences) * (1.0 + lost);
}

// Whether by what is known of it this sequence should draft beside the others in `outlook`, which it leaves
// if not.
void SpeculationPolicy::weigh(State& state, DraftForecast& forecast) const {
  const DraftStats& own = state.stats;
  DraftForecast without = forecast;
  without.remove(own, state.unread());
  const double rate = costs_.rate(without);
  // What a few steps brought says little: only what is too bad for chance ends drafting.
  if (own.steps >= kStepsToJudge && costs_.rate(forecast.at_best(own.variance_of_gain())) < rate)
    state.is_on = false;
  if (costs_.rate(forecast) > rate) state.is_on = true;
  if (!state.is_on) forecast = without;
}

// Who should draft.
void SpeculationPolicy::choose(double plain_rate) {
  constexpr double kFading = 0.1;
  std::ranges::sort(order_, [](const Asked& a, const Asked& b) {
    const double gain = a.state->stats.gain, other = b.state->stats.gain;
    return gain != other ? gain < other : a.draft->sequence < b.draft->sequence;
  });
  DraftForecast forecast{.tokens = costs_.load().sequences};
  for (const Asked& asked : order_) forecast.add(asked.state->stats, asked.state->unread());
  for (const Asked& asked : order_) weigh(*asked.state, forecast);
  is_off_ = forecast.steps >= kStepsToJudge && costs_.rate(forecast.at_best(forecast.variance)) < plain_rate;
  const double better = is_off_ ? 1.0 : std::max(1.0, costs_.rate(forecast) / plain_rate);
  advantage_ += kFading * (better - advantage_);
  double pool = 0.0;
  for (const Asked& asked : order_) {
    if (asked.state->is_on) pool += asked.state->account.balance;
  }
  budget_.begin(costs_.drafting(), pool);
}

// A run that has begun goes on for a second step; else the account that would pay for it says whether this
// sequence drafts.
bool SpeculationPolicy::decide(State& state) {
  return state.is_run_new || budget_.pays(state.account, is_off_ || !state.is_on);
}

void SpeculationPolicy::plan(const BatchShape& load, std::span<Draft> drafts) {
  order_.clear();
  costs_.begin(load, static_cast<double>(drafts.size()));
  for (Draft& draft : drafts) {
    State& state = open(draft);
    state.drafted.reset(0);
    state.missed = static_cast<double>(draft.tokens) - state.read;
    if (options_.schedule == LengthSchedule::kHeuristic) draft.depth = std::min(draft.depth, state.length);
    state.is_auto = draft.is_auto.value_or(options_.is_auto) && costs_.known();
    if (state.is_auto) order_.push_back({&draft, &state});
  }
  if (order_.empty()) return;
  const double plain = costs_.plain_rate();
  choose(plain);
  const bool is_plain = ++steps_since_plain_ >= kStepsToPlain;
  for (const auto& [draft, asked_state] : order_) {
    State& state = *asked_state;
    if (is_plain || !decide(state)) {
      draft->depth = 0;
      state.stats.fade_into(stats_of_all());
      ++state.idle;
      state.is_run_new = false;
      continue;
    }
    draft->rate = advantage_ * plain;
    draft->estimates = &state.estimates;
  }
  if (std::ranges::all_of(drafts, [](const Draft& draft) { return draft.depth == 0; }))
    steps_since_plain_ = 0;
}

void SpeculationPolicy::prune(std::span<const Grown> trees, int max_rows) {
  costs_.set_drafting(static_cast<double>(trees.size()));
  unread_ = 0.0;
  for (const Grown& grown : trees) unread_ += states_.at(grown.sequence).unread();
  verified_rows_ = 0.0;
  if (!costs_.known()) return;
  pruner_.clear();
  // For all sequences: those that draft together for the first time do so in any step.
  pruner_.reserve(states_.size(), static_cast<size_t>(1 + options_.max_nodes));
  for (const Grown& grown : trees) {
    State& state = states_.at(grown.sequence);
    if (state.is_auto) state.drafted = *grown.tree;
    if (state.is_auto && grown.may_drop) {
      pruner_.add(*grown.tree, state.estimates);
    } else {
      verified_rows_ += grown.tree->drafted();
    }
  }
  const TreePruner::Terms terms{.rate = advantage_ * costs_.plain_rate(),
                                .other_rows = verified_rows_,
                                .max_rows = static_cast<double>(max_rows)};
  verified_rows_ += static_cast<double>(pruner_.keep(terms, costs_));
}

void SpeculationPolicy::observe(const StepObservation& step) {
  if (step.is_decoding) costs_.learn_pass(step.rows, costs_.load().context, step.pass_ms);
  for (const DraftOutcome& outcome : step.outcomes) learn_outcome(outcome, step.draft_ms);
  if (!step.is_decoding) return;
  costs_.learn_rest(step.has_drafted, step.rest_ms);
  learn_speedup(step);
}

void SpeculationPolicy::learn_outcome(const DraftOutcome& outcome, double draft_ms) {
  State& state = states_.at(outcome.sequence);
  const Verdict& verdict = *outcome.verdict;
  if (options_.schedule == LengthSchedule::kHeuristic) {
    const bool is_whole = std::cmp_equal(verdict.path.size(), state.length + 1);
    state.length = std::clamp(is_whole ? state.length + 2 : state.length - 1, 1, options_.max_depth);
  }
  if (state.is_auto) learn(state, verdict.tokens, outcome.verified, draft_ms);
  state.idle = 0;
  state.read += state.missed;
}

void SpeculationPolicy::learn(State& state, std::span<const TokenId> committed, int verified,
                              double draft_ms) {
  const auto gain = static_cast<double>(committed.size()) - 1.0;
  state.estimates.learn(state.drafted, committed);
  all_estimates_.learn(state.drafted, committed);
  for (DraftStats* stats : {&stats_of_all(), &state.stats}) stats->learn(gain, verified);
  learn_time(state, draft_ms);
  const double reading_ms = stats_of_all().reading.ms_of(state.unread()) * costs_.pace();
  budget_.settle(state.account, won(gain, verified, draft_ms), costs_.drafting(), tokens_in(reading_ms));
  state.is_run_new = state.resumes();
  state.run = state.is_run_new ? 1 : state.run + 1;
}

// Of a step in which some resume, only what these took beyond the others is learned, by each in proportion to
// what it read.
void SpeculationPolicy::learn_time(State& state, double draft_ms) {
  DraftStats& all = stats_of_all();
  draft_ms /= costs_.pace();
  const double alone_ms = draft_ms / costs_.share_of_batch(costs_.drafting());
  if (unread_ > 0.0) {
    const double steady_ms = all.draft.ms;
    for (DraftStats* stats : {&all, &state.stats}) {
      if (alone_ms < stats->draft.ms) stats->draft.learn(alone_ms);
      if (state.unread() > 0.0) {
        const double reading_ms = std::max(0.0, alone_ms - steady_ms) * costs_.drafting();
        stats->reading.learn(reading_ms * state.unread() / unread_, state.unread());
      }
    }
    return;
  }
  costs_.learn_batching(draft_ms, all.draft.ms);
  for (DraftStats* stats : {&all, &state.stats}) stats->draft.learn(alone_ms);
}

void SpeculationPolicy::forget(uint64_t sequence) {
  const auto found = states_.find(sequence);
  if (found == states_.end()) return;
  State& state = found->second;
  // What a pause or a try ended says nothing of how long a run could be.
  if (state.run > 0 && !state.resumes() && !state.account.is_try) stats_of_all().learn_run(state.run);
  budget_.close(state.account);
  states_.erase(found);
}

// Of plain decoding of the whole batch in that time.
double SpeculationPolicy::tokens_in(double ms) const {
  return ms * costs_.load().sequences / costs_.plain_ms();
}

// Tokens that a draft brought beyond those that plain decoding gives the whole batch in the time it took.
double SpeculationPolicy::won(double gain, int verified, double draft_ms) const {
  const double pass_ms = costs_.pass_ms(verified_rows_) - costs_.pass_ms(0.0);
  const double own_pass_ms = verified == 0 ? 0.0 : pass_ms * verified / verified_rows_;
  const double extra_ms = own_pass_ms + draft_ms + costs_.drafting_rest_ms() / costs_.drafting();
  return gain - tokens_in(extra_ms);
}

void SpeculationPolicy::learn_speedup(const StepObservation& step) {
  const BatchShape& shape = costs_.load();
  speedup_.learn({.rows = step.rows,
                  .context = shape.context,
                  .pass_ms = step.pass_ms,
                  .plain_rows = shape.rows,
                  .plain_rest_ms = costs_.plain_rest_ms(),
                  .plain_steps = step.tokens / shape.sequences,
                  .ms = step.step_ms});
}

}  // namespace outrider
