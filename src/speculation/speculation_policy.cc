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
constexpr double kHopeless = 0.9;       // of plain speed: not worth a new sequence's own account
// Of the accounts, in tokens.
constexpr double kFirstBalance = 3.5;
constexpr double kLargestBalance = 6.0;
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

// A stalled thread is no news about the drafter.
void SpeculationPolicy::Means::learn_time(double new_draft_ms) {
  constexpr double kMostSurprise = 2.0;
  timed_steps = std::min(timed_steps + 1.0, kTimesRemembered);
  if (timed_steps > 1.0) new_draft_ms = std::min(new_draft_ms, kMostSurprise * draft_ms);
  draft_ms += (new_draft_ms - draft_ms) / timed_steps;
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
    state.means = all_means_;
    state.means.steps = std::min(all_means_.steps, kStepsOfPrior);
    state.means.timed_steps = std::min(all_means_.timed_steps, kStepsOfPrior);
    state.length = options_.max_depth;
    state.balance = kFirstBalance;
    state.is_on = !is_hopeless();
  }
  return state;
}

size_t SpeculationPolicy::BySize::index(double size) {
  const auto power = static_cast<size_t>(std::bit_width(static_cast<unsigned>(std::max(1.0, size)))) - 1;
  return std::min(power, decltype(known)().size() - 1);
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

void SpeculationPolicy::Outlook::add(const Means& means, double sign) {
  drafting += sign;
  tokens += sign * means.gain;
  rows += sign * means.rows;
  draft_ms += sign * means.draft_ms;
  steps += sign * means.steps;
  variance += sign * means.variance / std::max(1.0, means.steps);
}

// Of what drafting takes by itself, what each takes if so many draft together.
double SpeculationPolicy::share_of_batch(double drafting) const {
  return drafting <= 1.0 ? 1.0 : std::pow(drafting, -batching_);
}

double SpeculationPolicy::rest_ms(bool has_drafted) const {
  const double own = (has_drafted ? drafting_rest_ : plain_rest_).nearest(load_.sequences);
  const double other = (has_drafted ? plain_rest_ : drafting_rest_).nearest(load_.sequences);
  return load_.sequences * (own > 0.0 ? own : other);
}

double SpeculationPolicy::plain_ms() const {
  return costs_.pass_ms(load_.rows, load_.context) + rest_ms(false);
}

double SpeculationPolicy::rate_of(const Outlook& outlook) const {
  const double rows = load_.rows + std::max(0.0, outlook.rows);
  const double rest = (rest_ms(true) - rest_ms(false)) * outlook.drafting / drafting_ + rest_ms(false);
  const double draft_ms = outlook.draft_ms * share_of_batch(outlook.drafting);
  return outlook.tokens / (costs_.pass_ms(rows, load_.context) + rest + draft_ms);
}

// Whether by what all sequences learned a new one would lose more than a tenth of its tokens.
bool SpeculationPolicy::is_hopeless() const {
  if (costs_.empty() || all_means_.steps < kStepsToTrust) return false;
  Outlook drafted{.tokens = load_.sequences};
  drafted.add(all_means_, 1.0);
  const double lost = plain_rate() * drafted.tokens / rate_of(drafted) - load_.sequences;
  return 1.0 + all_means_.gain < kHopeless * (1.0 + lost);
}

// Whether by what is known of it this sequence should draft beside the others in `outlook`, which it leaves
// if not.
void SpeculationPolicy::weigh(State& state, Outlook& outlook) const {
  Outlook without = outlook;
  without.add(state.means, -1.0);
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
  const auto means = [&](const Draft* draft) -> const Means& { return state_of(draft->sequence).means; };
  std::ranges::sort(order_, [&](const Draft* a, const Draft* b) {
    return means(a).gain != means(b).gain ? means(a).gain < means(b).gain : a->sequence < b->sequence;
  });
  Outlook outlook{.tokens = load_.sequences};
  for (const Draft* draft : order_) outlook.add(means(draft), 1.0);
  for (const Draft* draft : order_) weigh(state_of(draft->sequence), outlook);
  Outlook at_best = outlook;
  at_best.tokens += std::sqrt(std::max(0.0, outlook.variance));
  is_off_ = outlook.steps >= kStepsToJudge && rate_of(at_best) < plain_rate;
  const double better = is_off_ ? 1.0 : std::max(1.0, rate_of(outlook) / plain_rate);
  advantage_ += kFading * (better - advantage_);
  pool_ = 0.0;
  for (const Draft* draft : order_) {
    const State& state = state_of(draft->sequence);
    if (state.is_on) pool_ += state.balance;
  }
}

// Whether the account that would pay for it lets this sequence draft.
bool SpeculationPolicy::decide(State& state) {
  state.is_try = is_off_ || !state.is_on;
  if (state.is_try ? may_try_ : pool_ >= 0.0) return true;
  (state.is_try ? try_balance_ : state.balance) += state.is_try ? kIncome : kPromisedIncome;
  return false;
}

void SpeculationPolicy::plan(const StepLoad& load, std::span<Draft> drafts) {
  load_ = load;
  order_.clear();
  drafting_ = static_cast<double>(drafts.size());
  for (Draft& draft : drafts) {
    State& state = state_of(draft.sequence);
    state.drafted.reset(0);
    if (options_.schedule == LengthSchedule::kHeuristic) draft.depth = std::min(draft.depth, state.length);
    state.is_auto = draft.is_auto.value_or(options_.is_auto) && !costs_.empty();
    if (state.is_auto) order_.push_back(&draft);
  }
  if (order_.empty()) return;
  const double plain = plain_rate();
  choose(plain);
  may_try_ = try_balance_ >= kPriceOfTry * drafting_;
  const bool is_plain = ++steps_since_plain_ >= kStepsToPlain;
  for (Draft* draft : order_) {
    State& state = state_of(draft->sequence);
    if (is_plain || !decide(state)) {
      draft->depth = 0;
      state.means.fade_into(all_means_);
      state.has_just_drafted = false;
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
  constexpr double kFading = 0.05;  // per step
  const double share = share_of_batch(drafting_);
  for (Means* means : {&all_means_, &state.means}) {
    means->learn(gain, verified);
    // A drafter that was not asked for a while first reads what it missed: only that it took less is news.
    if (state.has_just_drafted || draft_ms < share * means->draft_ms) means->learn_time(draft_ms / share);
  }
  if (drafting_ > 1.0 && state.has_just_drafted && all_means_.draft_ms > 0.0) {
    const double seen = std::log(all_means_.draft_ms / draft_ms) / std::log(drafting_);
    batching_ += kFading / drafting_ * (std::clamp(seen, 0.0, 1.0) - batching_);
  }
  settle(state, gain, verified, draft_ms);
}

// Pays what a draft brought into the account that paid for it, or takes out what it lost.
void SpeculationPolicy::settle(State& state, double gain, int verified, double draft_ms) {
  // Reading the prompt, once, is what all later drafts of a sequence share; but a try may be the only one.
  constexpr double kMostSurprise = 1.5;
  const double known_ms =
      state.means.timed_steps > 0.0 ? state.means.draft_ms * share_of_batch(drafting_) : draft_ms;
  const bool reads_prompt = std::exchange(state.is_first, false);
  if (!state.is_try) draft_ms = std::min(draft_ms, reads_prompt ? known_ms : kMostSurprise * known_ms);
  state.has_just_drafted = true;
  const double pass_ms =
      costs_.pass_ms(load_.rows + verified_rows_, load_.context) - costs_.pass_ms(load_.rows, load_.context);
  const double own_pass_ms = verified == 0 ? 0.0 : pass_ms * verified / verified_rows_;
  const double extra_ms = own_pass_ms + draft_ms + (rest_ms(true) - rest_ms(false)) / drafting_;
  double& balance = state.is_try ? try_balance_ : state.balance;
  double won = gain - extra_ms * load_.sequences / plain_ms();
  // One stalled draft is no verdict; a drafter that is always so slow shows in the means.
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
