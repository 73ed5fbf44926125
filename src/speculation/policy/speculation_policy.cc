// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/speculation_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace outrider {
namespace {

// Steps that a sequence or a batch drafts before it may be stopped.
constexpr double kStepsToJudge = 12.0;
// Steps of all sequences from which a new one is judged with one standard deviation in its favour, and from
// which it is judged by the mean.
constexpr double kMinSteps = 6.0;
constexpr double kStepsToTrust = 24.0;
// The largest loss of plain speed that a new sequence may be expected to cause; divided by the sequences of
// the batch, which learn for each other. Beyond it the sequence drafts for exploration only.
constexpr double kMaxExpectedLoss = 0.03;
// A new sequence may be tried at the price of what so many drafts of one token should bring.
constexpr double kTrialDrafts = 2.0;

}  // namespace

SpeculationPolicy::SpeculationPolicy(const Options& options, PassCosts costs)
    : options_(options), costs_(costs), speedup_(std::move(costs)) {
  options_.is_auto = options_.is_auto && costs_.known();
}

SpeculationPolicy::State& SpeculationPolicy::open(const Draft& draft) {
  const auto [found, is_new] = states_.try_emplace(key(draft.sequence, draft.is_predicted));
  State& state = found->second;
  if (is_new) {
    state.is_predicted = draft.is_predicted;
    state.all = draft.is_predicted ? &of_predictions_ : &of_drafter_;
    state.estimates = AcceptanceEstimates(&state.all->estimates);
    state.stats = stats_of_all(*state.all);
    state.stats.become_prior();
    state.draft_len = options_.max_draft_len;
    const auto tokens = draft.is_predicted ? 0.0 : static_cast<double>(draft.tokens);
    state.account = budget_.open(trial(state, tokens));
    state.should_draft = !expects_loss(*state.all, tokens);
    if (costs_.known()) state.drafted.reserve(1 + options_.max_nodes);
  }
  return state;
}

// The statistics of all sequences in batches of this size class. A class without statistics starts with the
// statistics of the nearest class as its prior.
DraftStats& SpeculationPolicy::stats_of_all(Experience& all) {
  const double size = costs_.load().sequences;
  DraftStats& own = all.stats[size];
  if (own.steps > 0.0) return own;
  const auto is_known = [](const DraftStats& stats) { return stats.steps > 0.0; };
  if (const DraftStats* other = all.stats.nearest(size, is_known)) {
    own = *other;
    own.become_prior();
  }
  return own;
}

// Whether a new sequence is expected to lose too much by drafting, according to the statistics of all
// sequences.
bool SpeculationPolicy::expects_loss(Experience& experience, double prefill_tokens) {
  const DraftStats& all = stats_of_all(experience);
  if (!costs_.known() || all.steps < kMinSteps) return false;
  const double sequences = costs_.load().sequences;
  DraftForecast drafted{.tokens = sequences};
  drafted.add(all, prefill_tokens);
  const double lost = costs_.plain_rate() * drafted.tokens / costs_.rate(drafted) - sequences;
  // Few steps count only if their result is worse than chance explains.
  const double chance = all.steps < kStepsToTrust ? std::sqrt(all.variance_of_gain()) : 0.0;
  return 1.0 + all.gain + chance < (1.0 - kMaxExpectedLoss / sequences) * (1.0 + lost);
}

// Tokens that a new sequence may lose where drafting did not pay in others. Texts differ, so a drafter with
// files that promise much is tried with each of them, unless reading the prompt for it is known to cost more.
// So is every prediction.
double SpeculationPolicy::trial(State& state, double prefill_tokens) {
  if (!costs_.known()) return 0.0;
  const double trial = kTrialDrafts * (state.is_predicted ? 1.0 : options_.agreement);
  const PrefillTime& prefill = stats_of_all(*state.all).prefill;
  const double reading = plain_tokens_in(prefill.ms_of(prefill_tokens) * costs_.pace());
  return reading < trial || !prefill.is_confirmed() ? trial : 0.0;
}

// Decides whether the batch is faster if this sequence drafts beside the others in `forecast`; removes it
// from the forecast if not.
void SpeculationPolicy::update_should_draft(State& state, DraftForecast& forecast) const {
  const DraftStats& own = state.stats;
  DraftForecast without = forecast;
  without.remove(own, state.prefill_tokens());
  const double rate = costs_.rate(without);
  // Drafting stops only if even the upper confidence bound of the gain does not pay.
  if (own.steps >= kStepsToJudge && costs_.rate(forecast.optimistic(own.variance_of_gain())) < rate)
    state.should_draft = false;
  if (costs_.rate(forecast) > rate) state.should_draft = true;
  if (!state.should_draft) forecast = without;
}

// Decides which sequences should draft: sequences with the smallest gain are left out first, and all of them
// if plain decoding is faster than the rest.
void SpeculationPolicy::choose_sequences(double plain_rate) {
  constexpr double kFading = 0.1;
  std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) {
    const double gain = a.state->stats.gain, other = b.state->stats.gain;
    return gain != other ? gain < other : a.draft->sequence < b.draft->sequence;
  });
  DraftForecast forecast{.tokens = costs_.load().sequences};
  for (const Candidate& candidate : candidates_)
    forecast.add(candidate.state->stats, candidate.state->prefill_tokens());
  for (const Candidate& candidate : candidates_) update_should_draft(*candidate.state, forecast);
  is_plain_better_ =
      forecast.steps >= kStepsToJudge && costs_.rate(forecast.optimistic(forecast.variance)) < plain_rate;
  const double better = is_plain_better_ ? 1.0 : std::max(1.0, costs_.rate(forecast) / plain_rate);
  advantage_ += kFading * (better - advantage_);
  double batch_balance = 0.0;
  for (const Candidate& candidate : candidates_) {
    if (candidate.state->should_draft) batch_balance += candidate.state->account.balance;
  }
  budget_.begin(costs_.drafting(), batch_balance);
}

// Whether the sequence drafts in this step. A run has at least two steps, because the first one includes
// prefill; beyond these the budget decides.
bool SpeculationPolicy::may_draft(State& state) {
  return state.is_first_of_run || budget_.allows(state.account, is_plain_better_ || !state.should_draft);
}

void SpeculationPolicy::plan(const BatchShape& load, std::span<Draft> drafts, int max_rows) {
  candidates_.clear();
  costs_.begin(load, static_cast<double>(drafts.size()));
  for (Draft& draft : drafts) {
    State& state = open(draft);
    state.drafted.reset(0);
    state.missed = draft.is_predicted ? 0.0 : static_cast<double>(draft.tokens) - state.read;
    if (draft.is_predicted) {
      const auto unasked = states_.find(key(draft.sequence, false));
      if (unasked != states_.end()) unasked->second.pause();
    } else if (options_.schedule == LengthSchedule::kHeuristic) {
      state.planned_len = state.draft_len;
      draft.max_draft_len = std::min(draft.max_draft_len, state.draft_len);
    }
    state.is_auto = draft.is_auto.value_or(options_.is_auto) && costs_.known();
    if (state.is_auto) candidates_.push_back({&draft, &state});
  }
  if (candidates_.empty()) return;
  const double plain = costs_.plain_rate();
  choose_sequences(plain);
  const bool is_plain = ++steps_since_plain_ >= kStepsToPlain;
  const double row_ms = price_of_row();
  for (const auto& [draft, candidate_state] : candidates_) {
    State& state = *candidate_state;
    if (is_plain || !may_draft(state)) {
      draft->max_draft_len = 0;
      state.stats.fade_into(stats_of_all(*state.all));
      state.pause();
      continue;
    }
    draft->rate = advantage_ * plain;
    draft->row_ms = row_ms;
    draft->estimates = &state.estimates;
  }
  limit_lengths(drafts, max_rows);
}

void SpeculationPolicy::repeat(const BatchShape& load, std::span<const Draft> drafts) {
  costs_.begin(load, static_cast<double>(drafts.size()));
  for (const Draft& draft : drafts) {
    State& state = open(draft);
    state.drafted.reset(0);
    state.missed = static_cast<double>(draft.tokens) - state.read;
    if (state.is_auto && draft.max_draft_len == 0) state.pause();
  }
}

SpeculationPolicy::TreeSize SpeculationPolicy::size_until_next_plan(uint64_t sequence, const TreeSize& most,
                                                                    double row_ms) const {
  const State& state = states_.at(key(sequence, false));
  const double nodes = static_cast<double>(most.nodes) / most.levels;  // of a level
  const double level_ms = row_ms * nodes + usual_draft_ms(state.stats) / most.levels;
  const double price = advantage_ * costs_.plain_rate() * level_ms;
  double reached = state.estimates.continuation(0);  // the probability that a node of the level is accepted
  TreeSize size{.levels = 1};
  for (; size.levels < most.levels; ++size.levels) {
    reached *= state.estimates.continuation(size.levels);
    if (reached <= price) break;
  }
  size.nodes = static_cast<int>(std::ceil(nodes * size.levels));
  return size;
}

// Levels beyond an equal part of the rows would seldom be verified.
void SpeculationPolicy::limit_lengths(std::span<Draft> drafts, int max_rows) {
  const auto drafting =
      std::ranges::count_if(drafts, [](const Draft& draft) { return draft.max_draft_len > 0; });
  if (drafting == 0) {
    steps_since_plain_ = 0;
    return;
  }
  const int share = std::max(1, max_rows / static_cast<int>(drafting));
  for (Draft& draft : drafts) draft.max_draft_len = std::min(draft.max_draft_len, share);
}

// Drafts that go further than their nodes should be worth show how deep levels are accepted: the first few
// and then some of them cost no row.
double SpeculationPolicy::price_of_row() {
  constexpr int kFirst = 8;
  constexpr int kFurther = 16;
  const int64_t step = priced_steps_++;
  return step < kFirst || step % kFurther == 0 ? 0.0 : costs_.second_row_ms();
}

void SpeculationPolicy::prune(std::span<const Grown> trees, int max_rows) {
  costs_.set_drafting(static_cast<double>(trees.size()));
  prefill_tokens_ = 0.0;
  for (const Grown& grown : trees)
    prefill_tokens_ += states_.at(key(grown.sequence, grown.is_predicted)).prefill_tokens();
  verified_rows_ = 0.0;
  if (!costs_.known()) return;
  pruner_.clear();
  // Reserved for all sequences, so that a step in which more of them draft than before does not allocate.
  pruner_.reserve(states_.size(), static_cast<size_t>(1 + options_.max_nodes));
  for (const Grown& grown : trees) {
    State& state = states_.at(key(grown.sequence, grown.is_predicted));
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
  if (step.is_decoding) {
    costs_.learn_pass({.rows = step.rows,
                       .context = costs_.load().context,
                       .active_experts = step.active_experts,
                       .ms = step.pass_ms});
  }
  for (const DraftOutcome& outcome : step.outcomes) learn_outcome(outcome, step.draft_ms);
  if (!step.is_decoding) return;
  costs_.learn_rest(step.has_drafted, step.rest_ms);
  learn_speedup(step);
}

void SpeculationPolicy::learn_outcome(const DraftOutcome& outcome, std::optional<double> draft_ms) {
  State& state = states_.at(key(outcome.sequence, outcome.is_predicted));
  const Verdict& verdict = *outcome.verdict;
  if (!state.is_predicted && options_.schedule == LengthSchedule::kHeuristic) {
    const bool is_whole = std::cmp_equal(verdict.path.size(), state.planned_len + 1);
    state.draft_len =
        std::clamp(is_whole ? state.draft_len + 2 : state.draft_len - 1, 1, options_.max_draft_len);
  }
  if (state.is_auto) learn(state, verdict.tokens, outcome.verified, draft_ms);
  state.idle = 0;
  state.read += state.missed;
}

void SpeculationPolicy::learn(State& state, std::span<const TokenId> committed, int verified,
                              std::optional<double> draft_ms) {
  const auto gain = static_cast<double>(committed.size()) - 1.0;
  state.estimates.learn(state.drafted, committed);
  state.all->estimates.learn(state.drafted, committed);
  for (DraftStats* stats : {&stats_of_all(*state.all), &state.stats}) stats->learn(gain, verified);
  if (draft_ms) learn_time(state, *draft_ms);
  const double prefill_ms = stats_of_all(*state.all).prefill.ms_of(state.prefill_tokens()) * costs_.pace();
  budget_.record(state.account,
                 gain_over_plain(gain, verified, draft_ms.value_or(usual_draft_ms(state.stats))),
                 costs_.drafting(), plain_tokens_in(prefill_ms));
  state.is_first_of_run = state.resumes();
  state.run = state.is_first_of_run ? 1 : state.run + 1;
}

// Learns draft times. In a step in which some sequences resume after a pause, the time beyond the usual one
// counts as their prefill, in proportion to the tokens that each had to read.
void SpeculationPolicy::learn_time(State& state, double draft_ms) {
  DraftStats& all = stats_of_all(*state.all);
  draft_ms /= costs_.pace();
  const double alone_ms = draft_ms / costs_.share_of_batch(costs_.drafting());
  if (prefill_tokens_ > 0.0) {
    const double steady_ms = all.draft.ms;
    for (DraftStats* stats : {&all, &state.stats}) {
      if (alone_ms < stats->draft.ms) stats->draft.learn(alone_ms);
      if (state.prefill_tokens() > 0.0) {
        const double prefill_ms = std::max(0.0, alone_ms - steady_ms) * costs_.drafting();
        stats->prefill.learn(prefill_ms * state.prefill_tokens() / prefill_tokens_, state.prefill_tokens());
      }
    }
    return;
  }
  costs_.learn_batching(draft_ms, all.draft.ms);
  for (DraftStats* stats : {&all, &state.stats}) stats->draft.learn(alone_ms);
}

void SpeculationPolicy::forget(uint64_t sequence) {
  forget_state(key(sequence, false));
  forget_state(key(sequence, true));
}

void SpeculationPolicy::forget_state(uint64_t key) {
  const auto found = states_.find(key);
  if (found == states_.end()) return;
  State& state = found->second;
  // A run that a pause or exploration ended does not tell how long runs last.
  if (state.run > 0 && !state.resumes() && !state.account.is_exploration)
    stats_of_all(*state.all).learn_run(state.run);
  budget_.close(state.account);
  states_.erase(found);
}

// A sequence's share of the time of drafting, as it has been.
double SpeculationPolicy::usual_draft_ms(const DraftStats& stats) const {
  return stats.draft.ms * costs_.pace() * costs_.share_of_batch(costs_.drafting());
}

// Tokens that plain decoding of the whole batch commits in that time.
double SpeculationPolicy::plain_tokens_in(double ms) const {
  return ms * costs_.load().sequences / costs_.plain_ms();
}

// Tokens gained by a draft minus the tokens that plain decoding of the whole batch commits in the same time.
double SpeculationPolicy::gain_over_plain(double gain, int verified, double draft_ms) const {
  const double pass_ms = costs_.pass_ms(verified_rows_) - costs_.pass_ms(0.0);
  const double own_pass_ms = verified == 0 ? 0.0 : pass_ms * verified / verified_rows_;
  const double extra_ms = own_pass_ms + draft_ms + costs_.drafting_rest_ms() / costs_.drafting();
  return gain - plain_tokens_in(extra_ms);
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
