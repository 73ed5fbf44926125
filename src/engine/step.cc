// SPDX-License-Identifier: Apache-2.0
#include "engine/step.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "engine/guarded_call.h"
#include "engine/step_figures.h"
#include "engine/step_tracer.h"
#include "sampling/log_probability.h"
#include "sampling/logit_scan.h"
#include "speculation/acceptance/verifier.h"

namespace outrider {
namespace {

SequencePlan within_request(SequencePlan plan) {
  const int max = plan.sequence->request().speculation.max_draft_tokens;
  if (max > 0) {
    plan.draft_depth = std::min(plan.draft_depth, max);
    plan.draft_nodes = std::min(plan.draft_nodes, max);
  }
  return plan;
}

SamplingParams without_truncation(SamplingParams params) {
  if (params.temperature == 0.0) params.temperature = 1.0;
  params.top_k = 0;
  params.top_p = 1.0;
  params.min_p = 0.0;
  return params;
}

}  // namespace

Step::Step(const Parts& parts) : parts_(parts) {
  const auto sequences = static_cast<size_t>(parts.limits.max_sequences);
  batch_.reserve(parts.limits);
  work_.resize(sequences);
  for (Work& work : work_) {
    const auto longest = static_cast<size_t>(parts.limits.max_depth) + 1;
    work.verdict.path.reserve(longest);
    work.verdict.tokens.reserve(longest);
    work.verdict.origins.reserve(longest);
    work.verdict.fates.reserve(static_cast<size_t>(parts.limits.rows));
    work.verdict.choices.reserve(static_cast<size_t>(parts.limits.rows));
    work.tree.reserve(1 + parts.max_nodes);
  }
  wants_features_ = parts.drafter->traits().features.count() > 0;
  for (Work& work : work_) {
    if (wants_features_) work.feature_rows.reserve(static_cast<size_t>(parts.limits.rows));
  }
  features_.reserve(sequences);
  if (parts.drafter->traits().uses_target) {
    batch_.resumed_states.reserve(
        static_cast<size_t>(parts.limits.rows * parts.target->config().hidden_size));
  }
  trees_.resize(sequences);
  for (TokenTree& tree : trees_) tree.reserve(1 + parts.max_nodes);
  reserve_figures(totals_.speculation, parts.limits.max_depth);
  requests_.reserve(sequences);
  drafting_.reserve(sequences);
  drafts_.reserve(sequences);
  grown_.reserve(sequences);
  path_.reserve(static_cast<size_t>(parts.limits.rows));
}

void Step::run(std::span<const SequencePlan> plans, int draft_rows, StepTracer* tracer) {
  tracer_ = tracer;
  draft_rows_ = draft_rows;
  work_count_ = plans.size();
  if (work_.size() < work_count_) work_.resize(work_count_);
  for (size_t i = 0; i < work_count_; ++i) {
    work_[i].plan = within_request(plans[i]);
    work_[i].tree.reset(plans[i].sequence->tokens().back());
    work_[i].exits.clear();
  }
  measure_load();
  const double start = now_ms();
  plan_drafts();
  reserve();
  draft();
  prune();
  const double drafted = now_ms();
  draft_ms_ = drafting_.empty() ? 0.0 : (drafted - start) / static_cast<double>(drafting_.size());
  flatten();
  const double forward_start = now_ms();
  logits_ = parts_.target->forward(batch_, *parts_.cache);
  const double forward_ms = now_ms() - forward_start;
  const auto catches_up = [](const Work& work) { return work.plan.prefill_tokens > 0; };
  const bool is_decoding = std::none_of(work().begin(), work().end(), catches_up);
  if (is_decoding) parts_.policy->observe_pass(batch_.rows(), load_.context, forward_ms);
  for (Work& work : work()) {
    if (work.plan.decodes) verify_one(work);
    if (work.plan.draft_depth > 0 && parts_.drafter->traits().wants_choices) list_choices(work);
    commit_one(work);
    if (tracer_ != nullptr && work.plan.decodes) tracer_->record(index_of(work), work.tree, work.verdict);
  }
  hand_over_features();
  const double tracing_ms = tracer_ == nullptr ? 0.0 : tracer_->own_ms();
  account(drafted - start, now_ms() - drafted - tracing_ms);
  if (tracer_ != nullptr) tracer_->time(drafted - start, forward_ms, batch_.rows(), draft_failed_);
  for (Work& work : work()) observe_one(work);
  if (is_decoding)
    observe_times({.start = start, .drafted = drafted, .forward = forward_ms, .tracing = tracing_ms});
}

void Step::observe_times(const Times& times) {
  const double end = now_ms();
  double tokens = 0.0;
  for (const Work& work : work()) tokens += static_cast<double>(work.verdict.tokens.size());
  parts_.policy->observe_rest(!drafting_.empty(), end - times.drafted - times.forward - times.tracing);
  parts_.policy->observe_step(tokens, end - times.start - times.tracing);
}

void Step::forget(Sequence& sequence) {
  if (!std::exchange(sequence.started, false)) return;
  (void)guarded([&] { return parts_.drafter->end(sequence.id()), Status(); });
  parts_.policy->forget(sequence.id());
}

void Step::measure_load() {
  load_ = {.rows = 0.0, .context = 0.0, .sequences = 0.0};
  for (const Work& work : work()) {
    load_.rows += work.plan.prefill_tokens + (work.plan.decodes ? 1 : 0);
    load_.sequences += work.plan.decodes ? 1 : 0;
    load_.context += work.plan.sequence->kv.length() / static_cast<double>(work_count_);
  }
}

void Step::reserve() {
  for (Work& work : work()) {
    auto transaction = parts_.cache->stage(work.plan.sequence->kv, work.plan.entries());
    OUTRIDER_CHECK(transaction.ok());  // the scheduler planned within the pages there are
    work.transaction = std::move(*transaction);
  }
}

void Step::flatten() {
  batch_.clear();
  for (Work& work : work()) {
    Sequence& sequence = *work.plan.sequence;
    work.first_row = batch_.rows();
    if (work.plan.prefill_tokens == 0) {
      if (!wants_features_) resume(work, batch_.rows());  // features come from whole passes
      work.logits_index = append_tree(batch_, sequence.kv, *work.transaction,
                                      {work.tree.tokens(), work.tree.parents()}, LogitsWanted::kAll);
    } else {
      const auto chunk = sequence.tokens().subspan(static_cast<size_t>(sequence.kv.length()),
                                                   static_cast<size_t>(work.plan.entries()));
      const int first = work.plan.prefill_tokens - prompt_logits(work);
      work.prompt_logits_index = append_chain(batch_, sequence.kv, *work.transaction, chunk, first);
      work.logits_index = work.prompt_logits_index + prompt_logits(work);
    }
  }
}

// Lets the rows that the drafter took through the first layers enter behind them, up to the first that is no
// longer what it was in the tree: those after it may descend from it. `first_row`: of the tree.
void Step::resume(const Work& work, int first_row) {
  const ExitStates& exits = work.exits;
  const auto changed = std::ranges::find_if_not(exits.rows, [&](const ExitStates::Row& row) {
    return row.node < work.tree.size() && work.tree.token(row.node) == row.token &&
           work.tree.parent(row.node) == row.parent;
  });
  if (changed == exits.rows.begin()) return;
  batch_.resume_layer = exits.layers;
  for (auto row = exits.rows.begin(); row != changed; ++row)
    batch_.resumed_rows.push_back(first_row + row->node);
  const auto hidden = static_cast<std::ptrdiff_t>(exits.states.size() / exits.rows.size());
  batch_.resumed_states.insert(batch_.resumed_states.end(), exits.states.begin(),
                               exits.states.begin() + (changed - exits.rows.begin()) * hidden);
}

// The last rows of the chunk, where log-probabilities of their next tokens are wanted: all of them but those
// that were known before the sequence lost its pages.
int Step::prompt_logits(const Work& work) {
  const Sequence& sequence = *work.plan.sequence;
  if (sequence.pending_logprobs() == 0) return 0;
  const int64_t first = sequence.prompt_length() - 1 - sequence.pending_logprobs();
  const int64_t length = sequence.kv.length();
  return static_cast<int>(std::max<int64_t>(0, length + work.plan.prefill_tokens - std::max(first, length)));
}

AcceptanceRule Step::rule_of(const Sequence& sequence) const {
  return sequence.request().speculation.acceptance.value_or(parts_.acceptance);
}

TreeLogits Step::logits_of(const Work& work) const {
  const auto row_size = static_cast<size_t>(parts_.target->config().vocab_size);
  return {.rows = logits_.subspan(static_cast<size_t>(work.logits_index) * row_size),
          .row_size = row_size,
          .vocab_size = static_cast<size_t>(parts_.vocab_size)};
}

// The target's likeliest token after every node, for drafters that learn from nodes off the path, too.
void Step::list_choices(Work& work) {
  const TreeLogits logits = logits_of(work);
  for (int node = 0; node < work.tree.size(); ++node)
    work.verdict.choices.push_back(largest_logit(logits.after(node)).token);
}

// Of the tokens just committed.
void Step::list_logprobs(const Work& work) {
  const TreeLogits logits = logits_of(work);
  for (size_t i = 0; i < work.verdict.tokens.size(); ++i) {
    const LogSoftmax distribution(logits.after(work.verdict.path[i]));
    work.plan.sequence->completion().logprobs.push_back(
        distribution.list(work.verdict.tokens[i], work.plan.sequence->request().logprobs));
  }
}

// Of the prompt's tokens behind the rows that were computed.
void Step::list_prompt_logprobs(const Work& work) {
  Sequence& sequence = *work.plan.sequence;
  const auto row_size = static_cast<size_t>(parts_.target->config().vocab_size);
  const int count = prompt_logits(work);
  const auto next = static_cast<size_t>(sequence.kv.length() + work.plan.prefill_tokens - count + 1);
  for (int i = 0; i < count; ++i) {
    const auto row = static_cast<size_t>(work.prompt_logits_index + i);
    const LogSoftmax distribution(logits_.subspan(row * row_size, static_cast<size_t>(parts_.vocab_size)));
    const TokenId token = sequence.tokens()[next + static_cast<size_t>(i)];
    TokenLogprobs logprobs = distribution.list(token, sequence.request().prompt_logprobs);
    logprobs.rank = distribution.rank(token);
    sequence.collect(std::move(logprobs));
  }
}

void Step::verify_one(Work& work) {
  Sequence& sequence = *work.plan.sequence;
  const SamplingParams& sampling = sequence.request().sampling;
  const auto position = static_cast<int64_t>(sequence.tokens().size());
  const AcceptanceRule rule = rule_of(sequence);
  bool is_empty = false;  // the distribution of the node reached last
  walk_.start(sequence, work.tree, logits_of(work));
  const auto logits_after = [&](int node) {
    const bool is_new = node != walk_.node();
    const std::span<const float> row = walk_.reach(node);
    if (is_new && tracer_ != nullptr) tracer_->reach(index_of(work), work.tree, node, row);
    return row;
  };
  const auto target_distribution = [&](int node) -> const Distribution& {
    const Distribution& distribution = distributions_.build(logits_after(node), sampling, sequence.history);
    is_empty = distribution.empty();
    return distribution;
  };
  const auto target_token = [&](int node) {
    const TokenId token = chooser_.choose(logits_after(node), sampling, sequence.history,
                                          {&sequence.randomness, position + work.tree.depth(node)});
    is_empty = token < 0;
    return token;
  };
  SamplingParams untruncated;
  if (rule == AcceptanceRule::kRelaxed) untruncated = without_truncation(sampling);
  const auto untruncated_distribution = [&](int node) -> const Distribution& {
    return untruncated_distributions_.build(logits_after(node), untruncated, sequence.history);
  };
  verify({.tree = &work.tree,
          .target_distribution = std::ref(target_distribution),  // by reference: nothing to allocate
          .position = position,
          .rule = rule,
          .randomness = &sequence.randomness,
          .target_token = std::ref(target_token),
          .options = parts_.options,
          .untruncated_distribution = std::ref(untruncated_distribution),
          .thinking = sequence.thinking()},
         work.verdict);
  walk_.finish();
  work.is_dead_end = is_empty && sequence.constraint() != nullptr;
  if (!work.is_dead_end) return;
  work.verdict.tokens.pop_back();
  work.verdict.origins.pop_back();
}

void Step::commit_one(Work& work) {
  Sequence& sequence = *work.plan.sequence;
  path_.resize(static_cast<size_t>(work.plan.prefill_tokens));
  std::iota(path_.begin(), path_.end(), 0);
  const auto length = static_cast<size_t>(sequence.kv.length());
  size_t computed = path_.size();
  if (work.plan.prefill_tokens > 0) list_prompt_logprobs(work);
  if (work.plan.decodes) {
    const int committed = sequence.commit(work.verdict.tokens, work.verdict.origins);
    if (work.is_dead_end) sequence.finish(FinishReason::kStop);
    // The token after the last kept node is pending; nodes accepted past the end of the sequence are dropped.
    for (int i = 0; i < committed; ++i)
      path_.push_back(work.plan.prefill_tokens + work.verdict.path[static_cast<size_t>(i)]);
    // path[committed] holds the last committed token, if that was drafted.
    for (size_t i = static_cast<size_t>(committed) + 1; i < work.verdict.path.size(); ++i) {
      work.verdict.fates[static_cast<size_t>(work.verdict.path[i])] = NodeFate::kPastStop;
    }
    work.verdict.path.resize(static_cast<size_t>(committed));
    work.verdict.tokens.resize(static_cast<size_t>(committed));
    work.verdict.origins.resize(static_cast<size_t>(committed));
    computed += static_cast<size_t>(committed);
    if (sequence.request().logprobs >= 0) list_logprobs(work);
  }
  work.transaction->commit(path_, sequence.tokens().subspan(length, computed));
  work.transaction.reset();
  work.feature_rows.clear();
  if (!wants_features_) return;
  for (const int entry : path_) work.feature_rows.push_back(work.first_row + entry);
}

// Of all tokens that have their entries since this step.
void Step::hand_over_features() {
  if (!wants_features_) return;
  features_.clear();
  const std::span<const float> features = parts_.target->features();
  for (const Work& work : work()) {
    const Sequence& sequence = *work.plan.sequence;
    const auto count = static_cast<int>(work.feature_rows.size());
    features_.push_back({.sequence = sequence.id(),
                         .tokens = sequence.tokens(),
                         .first = sequence.kv.length() - count,
                         .rows = work.feature_rows,
                         .features = features.data(),
                         .size = parts_.target->feature_size()});
  }
  (void)guarded([&] { return parts_.drafter->absorb(features_), Status(); });
}

void Step::account(double draft_ms, double verify_ms) {
  for (Work& work : work()) {
    Completion& completion = work.plan.sequence->completion();
    if (!work.plan.decodes || work.plan.prefill_tokens > 0) {
      completion.prompt_ms += draft_ms + verify_ms;
    } else {
      completion.decode_ms += draft_ms + verify_ms;
    }
    if (!work.plan.decodes) continue;
    SpeculationStats& stats = completion.speculation;
    stats.method = work.plan.sequence->request().speculation.enabled ? parts_.drafter->traits().name : "None";
    stats.lossless = is_lossless(rule_of(*work.plan.sequence)) || stats.method == "None";
    const bool has_failed = draft_failed_ && work.plan.draft_depth > 0;
    stats.draft_failures += has_failed ? 1 : 0;
    stats.draft_ms += draft_ms;
    stats.verify_ms += verify_ms;
    add_tree(stats, work.tree, work.verdict);
    add_tree(totals_.speculation, work.tree, work.verdict);
    totals_.speculation.draft_failures += has_failed ? 1 : 0;
    totals_.speculation.lossless &= stats.lossless;
  }
  totals_.steps += 1;
  totals_.rows += batch_.rows();
  totals_.speculation.draft_ms += draft_ms;
  totals_.speculation.verify_ms += verify_ms;
}

void Step::observe_one(Work& work) {
  if (!work.plan.decodes || work.plan.draft_depth == 0 || draft_failed_) return;
  if (work.verdict.tokens.empty()) return;  // the constraint let nothing come: the sequence is over
  parts_.policy->observe(work.plan.sequence->id(), work.verdict, work.tree.drafted(), draft_ms_);
  (void)guarded(
      [&] { return parts_.drafter->observe(work.plan.sequence->id(), work.tree, work.verdict), Status(); });
}

}  // namespace outrider
