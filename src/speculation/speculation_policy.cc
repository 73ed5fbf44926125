// SPDX-License-Identifier: Apache-2.0
#include "speculation/speculation_policy.h"

#include <algorithm>
#include <bit>
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
// Of plain speed, over the sequences of the batch, which learn for one another: a new one that is expected to
// lose more waits for a try.
constexpr double kHopefulLoss = 0.1;
// Of the accounts, in tokens.
constexpr double kStepsOfRun = 16.0;  // that drafting goes on for once it begins
constexpr double kFirstBalance = 3.5;
constexpr double kLargestBalance = 6.0;
constexpr double kLargestPurse = 20.0;    // left to sequences that begin
constexpr double kMostLost = 2.0;         // by one step
constexpr double kIncome = 0.01;          // of the tries, per plain step
constexpr double kPromisedIncome = 0.06;  // of a sequence, where drafting should pay by all that is known
constexpr double kPriceOfTry = 1.0;       // of each sequence that may draft

// Moves a figure towards what was measured; the first time it is `first`. A stall says little.
void fade(double& known, double first, double measured) {
  constexpr double kFading = 0.05;
  constexpr double kMostSurprise = 2.0;
  if (known == 0.0) known = first;
  known += kFading * (std::min(measured, kMostSurprise * known) - known);
}

}  // namespace

void SpeculationPolicy::Means::learn(double new_gain, double new_rows) {
  steps = std::min(steps + 1.0, kStepsRemembered);
  const double surprise = new_gain - gain;
  variance += (surprise * surprise - variance) / (steps + kStepsOfPrior);
  gain += surprise / steps;
  rows += (new_rows - rows) / steps;
}

void SpeculationPolicy::Time::learn(double new_ms) {
  constexpr double kMostSurprise = 2.0;
  steps = std::min(steps + 1.0, kTimesRemembered);
  if (steps > 1.0) new_ms = std::min(new_ms, kMostSurprise * ms);
  ms += (new_ms - ms) / steps;
}

void SpeculationPolicy::Means::be_prior() {
  for (double* known : {&steps, &draft.steps, &resume.steps}) *known = std::min(*known, kStepsOfPrior);
}

void SpeculationPolicy::Means::fade_into(const Means& all) {
  constexpr double kFading = 0.03;
  if (steps <= kStepsOfPrior) return;
  steps += kFading * (kStepsOfPrior - steps);
  gain += kFading * (all.gain - gain);
  variance += kFading * (all.variance - variance);
  rows += kFading * (all.rows - rows);
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
    state.means = all_means();
    state.means.be_prior();
    state.length = options_.max_depth;
    state.balance = std::clamp(purse_, -kMostLost, kFirstBalance);
    purse_ -= state.balance;
    state.is_on = !is_hopeless();
  }
  return state;
}

size_t SpeculationPolicy::BySize::index(double size) {
  const auto power = static_cast<size_t>(std::bit_width(static_cast<unsigned>(std::max(1.0, size)))) - 1;
  return std::min(power, decltype(known)().size() - 1);
}

// What all sequences learned in batches like this one; in the first of its size, a little of what they
// learned in others.
SpeculationPolicy::Means& SpeculationPolicy::all_means() {
  Means& own = all_means_[BySize::index(load_.sequences)];
  if (own.steps > 0.0) return own;
  const auto distance = [&](const Means& means) {
    return means.steps > 0.0 ? std::abs(&means - &own) : std::ssize(all_means_);
  };
  own = *std::ranges::min_element(all_means_, {}, distance);
  own.be_prior();
  return own;
}

double SpeculationPolicy::BySize::nearest(double size) const {
  const auto own = static_cast<int>(index(size));
  const int count = static_cast<int>(known.size());
  for (int distance = 0; distance < count; ++distance) {
    for (const int index : {own - distance, own + distance}) {
      if (index >= 0 && index < count && known[static_cast<size_t>(index)] > 0.0)
        return known[static_cast<size_t>(index)];
    }
  }
  return 0.0;
}

void SpeculationPolicy::Outlook::add(const Means& means, bool resumes, double sign) {
  drafting += sign;
  tokens += sign * means.gain;
  rows += sign * means.rows;
  draft_ms += sign * (means.draft.ms + (resumes ? means.resume.ms / kStepsOfRun : 0.0));
  steps += sign * means.steps;
  variance += sign * means.variance / std::max(1.0, means.steps);
}

// Of what drafting takes by itself, what each takes if so many draft together.
double SpeculationPolicy::share_of_batch(double drafting) const {
  const auto count = static_cast<size_t>(std::lround(std::max(1.0, drafting)));
  return count < shares_.size() ? shares_[count] : std::pow(drafting, -batching_);
}

// What stays the same for all questions of a step.
void SpeculationPolicy::prepare(const StepLoad& load) {
  load_ = load;
  const double plain = plain_rest_.nearest(load.sequences), drafting = drafting_rest_.nearest(load.sequences);
  plain_rest_ms_ = load.sequences * (plain > 0.0 ? plain : drafting);
  drafting_rest_ms_ = load.sequences * (drafting > 0.0 ? drafting : plain);
  const auto count = static_cast<size_t>(drafting_) + 2;
  if (shares_.size() >= count && shared_by_ == batching_) return;
  shares_.resize(std::max(shares_.size(), count));
  shared_by_ = batching_;
  for (size_t i = 0; i < shares_.size(); ++i)
    shares_[i] = std::pow(static_cast<double>(std::max<size_t>(1, i)), -batching_);
}

double SpeculationPolicy::plain_ms() const {
  return costs_.pass_ms(load_.rows, load_.context) + plain_rest_ms_;
}

double SpeculationPolicy::rate_of(const Outlook& outlook) const {
  const double rows = load_.rows + std::max(0.0, outlook.rows);
  const double rest = (drafting_rest_ms_ - plain_rest_ms_) * outlook.drafting / drafting_ + plain_rest_ms_;
  const double draft_ms = outlook.draft_ms * share_of_batch(outlook.drafting);
  return outlook.tokens / (costs_.pass_ms(rows, load_.context) + rest + draft_ms);
}

// Whether a new sequence would lose too much by what all learned.
bool SpeculationPolicy::is_hopeless() {
  if (costs_.empty() || all_means().steps < kStepsToTrust) return false;
  Outlook drafted{.tokens = load_.sequences};
  drafted.add(all_means(), true, 1.0);
  const double lost = plain_rate() * drafted.tokens / rate_of(drafted) - load_.sequences;
  return 1.0 + all_means().gain < (1.0 - kHopefulLoss / load_.sequences) * (1.0 + lost);
}

// Whether by what is known of it this sequence should draft beside the others in `outlook`, which it leaves
// if not.
void SpeculationPolicy::weigh(State& state, Outlook& outlook) const {
  Outlook without = outlook;
  without.add(state.means, state.resumes(), -1.0);
  const double rate = rate_of(without);
  // What a few steps brought says little: only what is too bad for chance ends drafting.
  Outlook at_best = outlook;
  at_best.tokens += std::sqrt(state.means.variance / std::max(1.0, state.means.steps));
  if (state.means.steps >= kStepsToJudge && rate_of(at_best) < rate) state.is_on = false;
  if (rate_of(outlook) > rate) state.is_on = true;
  if (!state.is_on) outlook = without;
}

// Who should draft.
void SpeculationPolicy::choose(double plain_rate) {
  constexpr double kFading = 0.1;
  std::ranges::sort(order_, [](const Asked& a, const Asked& b) {
    const double gain = a.state->means.gain, other = b.state->means.gain;
    return gain != other ? gain < other : a.draft->sequence < b.draft->sequence;
  });
  Outlook outlook{.tokens = load_.sequences};
  for (const Asked& asked : order_) outlook.add(asked.state->means, asked.state->resumes(), 1.0);
  for (const Asked& asked : order_) weigh(*asked.state, outlook);
  Outlook at_best = outlook;
  at_best.tokens += std::sqrt(std::max(0.0, outlook.variance));
  is_off_ = outlook.steps >= kStepsToJudge && rate_of(at_best) < plain_rate;
  const double better = is_off_ ? 1.0 : std::max(1.0, rate_of(outlook) / plain_rate);
  advantage_ += kFading * (better - advantage_);
  pool_ = 0.0;
  for (const Asked& asked : order_) {
    if (asked.state->is_on) pool_ += asked.state->balance;
  }
}

// Whether the account that would pay for it lets this sequence draft.
bool SpeculationPolicy::decide(State& state) {
  if (state.is_run_new) return true;
  state.is_try = is_off_ || !state.is_on;
  if (state.is_try ? may_try_ : pool_ >= 0.0) return true;
  (state.is_try ? try_balance_ : state.balance) += state.is_try ? kIncome : kPromisedIncome;
  return false;
}

void SpeculationPolicy::plan(const StepLoad& load, std::span<Draft> drafts) {
  order_.clear();
  drafting_ = static_cast<double>(drafts.size());
  prepare(load);
  for (Draft& draft : drafts) {
    State& state = state_of(draft.sequence);
    state.drafted.reset(0);
    if (options_.schedule == LengthSchedule::kHeuristic) draft.depth = std::min(draft.depth, state.length);
    state.is_auto = draft.is_auto.value_or(options_.is_auto) && !costs_.empty();
    if (state.is_auto) order_.push_back({&draft, &state});
  }
  if (order_.empty()) return;
  const double plain = plain_rate();
  choose(plain);
  may_try_ = try_balance_ >= kPriceOfTry * drafting_;
  const bool is_plain = ++steps_since_plain_ >= kStepsToPlain;
  for (const auto& [draft, asked_state] : order_) {
    State& state = *asked_state;
    if (is_plain || !decide(state)) {
      draft->depth = 0;
      state.means.fade_into(all_means());
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

void SpeculationPolicy::prune(std::span<const Grown> trees, int most_rows) {
  drafting_ = static_cast<double>(trees.size());
  resuming_ = static_cast<double>(
      std::ranges::count_if(trees, [&](const Grown& grown) { return state_of(grown.sequence).resumes(); }));
  verified_rows_ = 0.0;
  if (costs_.empty()) return;
  candidates_.clear();
  for (size_t i = 0; i < trees.size(); ++i) {
    const TokenTree& tree = *trees[i].tree;
    State& state = state_of(trees[i].sequence);
    if (state.is_auto) state.drafted = tree;
    if (!state.is_auto || !trees[i].may_drop) {
      verified_rows_ += tree.drafted();
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
  const double rate = advantage_ * plain_rate();
  const double rows = load_.rows + verified_rows_;
  const auto most = static_cast<size_t>(std::max(0.0, most_rows - verified_rows_));
  size_t kept = 0;
  double sum = 0.0;
  double best = -rate * costs_.pass_ms(rows, load_.context);
  for (size_t count = 1; count <= std::min(candidates_.size(), most); ++count) {
    sum += candidates_[count - 1].probability;
    const double value = sum - rate * costs_.pass_ms(rows + static_cast<double>(count), load_.context);
    if (value <= best) continue;
    best = value;
    kept = count;
  }
  verified_rows_ += static_cast<double>(kept);
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
  for (Means* means : {&all_means(), &state.means}) means->learn(gain, verified);
  learn_time(state, draft_ms);
  settle(state, gain, verified, draft_ms);
  state.is_run_new = state.resumes();
  state.idle = 0;
}

// Of a step in which some resume, only what these took beyond the others is learned, and by them.
void SpeculationPolicy::learn_time(State& state, double draft_ms) {
  constexpr double kFading = 0.05;  // per step
  const double share = share_of_batch(drafting_);
  const double alone_ms = draft_ms / share;
  if (resuming_ > 0.0) {
    const double steady_ms = all_means().draft.ms;
    for (Means* means : {&all_means(), &state.means}) {
      if (alone_ms < means->draft.ms) means->draft.learn(alone_ms);
      if (state.resumes()) means->resume.learn(std::max(0.0, alone_ms - steady_ms) * drafting_ / resuming_);
    }
    return;
  }
  if (drafting_ > 1.0 && all_means().draft.ms > 0.0) {
    const double seen = std::log(all_means().draft.ms / draft_ms) / std::log(drafting_);
    batching_ += kFading / drafting_ * (std::clamp(seen, 0.0, 1.0) - batching_);
  }
  for (Means* means : {&all_means(), &state.means}) means->draft.learn(alone_ms);
}

void SpeculationPolicy::forget(uint64_t sequence) {
  const auto found = states_.find(sequence);
  if (found == states_.end()) return;
  purse_ = std::min(purse_ + found->second.balance, kLargestPurse);
  states_.erase(found);
}

// Pays what a draft brought into the account that paid for it, or takes out what it lost.
void SpeculationPolicy::settle(State& state, double gain, int verified, double draft_ms) {
  const double pass_ms =
      costs_.pass_ms(load_.rows + verified_rows_, load_.context) - costs_.pass_ms(load_.rows, load_.context);
  const double own_pass_ms = verified == 0 ? 0.0 : pass_ms * verified / verified_rows_;
  const double extra_ms = own_pass_ms + draft_ms + (drafting_rest_ms_ - plain_rest_ms_) / drafting_;
  double& balance = state.is_try ? try_balance_ : state.balance;
  double won = gain - extra_ms * load_.sequences / plain_ms();
  if (!state.is_try) won = std::max(won, -kMostLost);
  balance = std::min(balance + won, kLargestBalance * (state.is_try ? drafting_ : 1.0));
}

void SpeculationPolicy::observe_rest(bool has_drafted, double ms) {
  const double each = ms / load_.sequences;
  double& known = (has_drafted ? drafting_rest_ : plain_rest_)[load_.sequences];
  fade(known, each, each);
}

void SpeculationPolicy::observe_pass(double rows, double context, double ms) {
  if (!costs_.empty()) costs_.learn(rows, context, ms);
}

void SpeculationPolicy::observe_step(double tokens, double ms) {
  constexpr double kRememberedMs = 10000.0;
  if (costs_.empty()) return;
  const double kept = std::exp(-ms / kRememberedMs);
  plain_equivalent_ms_ = kept * plain_equivalent_ms_ + tokens / load_.sequences * plain_ms();
  spent_ms_ = kept * spent_ms_ + ms;
}

}  // namespace outrider
