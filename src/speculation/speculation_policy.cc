// SPDX-License-Identifier: Apache-2.0
#include "speculation/speculation_policy.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace outrider {
namespace {

constexpr double kStepsRemembered = 24.0;  // of one sequence
constexpr double kStepsOfPrior = 4.0;      // that the others' experience counts for
constexpr double kTryBudget = 0.01;        // of the time, for tries where drafting does not pay
constexpr int kShortestPause = 12;         // steps
constexpr int kLongestPause = 1024;
constexpr double kHysteresis = 0.01;

}  // namespace

void SpeculationPolicy::Means::learn(double weight, double new_gain, double new_rows, double new_draft_ms) {
  // A stalled thread is no news about the drafter.
  constexpr double kMostSurprise = 2.0;
  if (steps >= 1.0 && draft_ms > 0.0) new_draft_ms = std::min(new_draft_ms, kMostSurprise * draft_ms);
  gain += weight * (new_gain - gain);
  rows += weight * (new_rows - rows);
  draft_ms += weight * (new_draft_ms - draft_ms);
  steps += 1.0;
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
    state.length = options_.max_depth;
  }
  return state;
}

// Whether this sequence drafts in this step.
bool SpeculationPolicy::decide(State& state, const StepLoad& load) {
  const Means& means = state.means;
  constexpr double kStepsToJudge = 2.0;
  const double plain_ms = costs_.pass_ms(load.rows, load.context);
  const double with_ms =
      costs_.pass_ms(load.rows + means.rows, load.context) + means.draft_ms;  // others as they are
  // In units of what all sequences get from a plain pass.
  const double worth = (load.sequences + means.gain) / with_ms;
  const double plain = load.sequences / plain_ms;
  if (means.steps < kStepsToJudge) return true;
  if (state.is_on && worth < plain * (1.0 - kHysteresis)) {
    state.is_on = false;
    state.since_try = 0;
  } else if (!state.is_on && worth > plain * (1.0 + kHysteresis)) {
    state.is_on = true;
  }
  if (state.is_on) return true;
  const double loss = with_ms * plain - (load.sequences + means.gain);  // tokens, per try
  state.pause = std::clamp(static_cast<int>(loss / kTryBudget), kShortestPause, kLongestPause);
  if (++state.since_try < state.pause) return false;
  state.since_try = 0;
  return true;
}

void SpeculationPolicy::plan(const StepLoad& load, std::span<Draft> drafts) {
  constexpr double kFading = 0.05;
  for (Draft& draft : drafts) {
    State& state = state_of(draft.sequence);
    state.drafted.reset(0);
    if (options_.schedule == LengthSchedule::kHeuristic) draft.depth = std::min(draft.depth, state.length);
    if (!options_.is_auto) continue;
    if (!decide(state, load)) {
      draft.depth = 0;
      continue;
    }
    const double plain = 1.0 / costs_.pass_ms(load.rows, load.context);
    const double drafted =
        (1.0 + state.means.gain) /
        (costs_.pass_ms(load.rows + state.means.rows, load.context) + state.means.draft_ms);
    const double rate = std::max(plain, drafted);
    rate_ = rate_ == 0.0 ? rate : rate_ + kFading * (rate - rate_);
    draft.rate = rate_;
    draft.estimates = &state.estimates;
  }
}

void SpeculationPolicy::prune(const StepLoad& load, std::span<const Grown> trees) {
  if (!options_.is_auto) return;
  candidates_.clear();
  double rows = load.rows;
  for (size_t i = 0; i < trees.size(); ++i) {
    const TokenTree& tree = *trees[i].tree;
    State& state = state_of(trees[i].sequence);
    state.drafted = tree;
    if (!trees[i].may_drop) {
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
  const double rate = rate_ * load.sequences;
  size_t kept = 0;
  double sum = 0.0;
  double best = -rate * costs_.pass_ms(rows, load.context);
  for (size_t count = 1; count <= candidates_.size(); ++count) {
    sum += candidates_[count - 1].probability;
    const double value = sum - rate * costs_.pass_ms(rows + static_cast<double>(count), load.context);
    if (value <= best) continue;
    best = value;
    kept = count;
  }
  if (kept == candidates_.size()) return;
  for (size_t i = 0; i < trees.size(); ++i) {
    if (!trees[i].may_drop) continue;
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
  if (!options_.is_auto) return;
  state.estimates.learn(state.drafted, verdict.tokens);
  all_estimates_.learn(state.drafted, verdict.tokens);
  const auto weight = [](const Means& means) {
    return 1.0 / (1.0 + std::min(means.steps, kStepsRemembered));
  };
  all_means_.learn(weight(all_means_), gain, verified, draft_ms);
  state.means.learn(weight(state.means), gain, verified, draft_ms);
  // A try that paid is followed by another at once.
  const double extra_ms = costs_.pass_ms(1.0 + verified, 0.0) - costs_.pass_ms(1.0, 0.0) + draft_ms;
  if (!state.is_on && gain > rate_ * extra_ms) state.since_try = kLongestPause;
}

void SpeculationPolicy::observe_pass(double rows, double context, double ms) {
  if (options_.is_auto) costs_.learn(rows, context, ms);
}

}  // namespace outrider
