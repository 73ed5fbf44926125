// SPDX-License-Identifier: Apache-2.0
#include "engine/step/step_tracer.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/device_orders.h"
#include "sampling/distribution.h"
#include "sampling/token_mask.h"

namespace outrider {
namespace {

// The parameters for the probabilities in a trace: the request's, but temperature 1 in greedy
// decoding.
SamplingParams shown_distribution(SamplingParams sampling) {
  if (sampling.temperature > 0.0) return sampling;
  sampling.temperature = 1.0;
  sampling.drop_truncation();
  return sampling;
}

NodeCause cause_of(NodeFate fate, NodeCause if_rejected) {
  switch (fate) {
    case NodeFate::kAccepted:
      return NodeCause::kNone;
    case NodeFate::kRejected:
      return if_rejected;
    case NodeFate::kUnreached:
      return NodeCause::kNotReached;
    case NodeFate::kPastStop:
      return NodeCause::kPastStop;
    case NodeFate::kOverBudget:
      return NodeCause::kOverBudget;
  }
  return NodeCause::kNone;
}

// The probability of all tokens that are likelier than `token`; of equally likely ones the lower ids.
double mass_before(const Distribution& distribution, TokenId token) {
  const double own = probability(distribution, token);
  double mass = 0.0;
  for (size_t i = 0; i < distribution.tokens.size(); ++i) {
    const double other = distribution.probabilities[i];
    if (other > own || (other == own && distribution.tokens[i] < token)) mass += other;
  }
  return mass;
}

// Rank of `token` among the nodes drafted below the node at `parent`; -1 if it is not among them.
int rank_of(TokenId token, int parent, const std::vector<TraceNode>& nodes) {
  int rank = 0;
  for (const TraceNode& node : nodes) {
    if (node.parent != parent) continue;
    if (node.token == token) return rank;
    ++rank;
  }
  return -1;
}

}  // namespace

std::string_view fate_name(NodeFate fate) {
  switch (fate) {
    case NodeFate::kAccepted:
      return "accepted";
    case NodeFate::kRejected:
      return "rejected";
    case NodeFate::kUnreached:
      return "unreached";
    case NodeFate::kPastStop:
      return "past stop";
    case NodeFate::kOverBudget:
      return "over budget";
  }
  return "";
}

std::string_view origin_name(TokenOrigin origin) {
  switch (origin) {
    case TokenOrigin::kPlain:
      return "plain";
    case TokenOrigin::kAccepted:
      return "accepted";
    case TokenOrigin::kRecovered:
      return "recovered";
    case TokenOrigin::kBonus:
      return "bonus";
  }
  return "";
}

std::string_view cause_name(NodeCause cause) {
  switch (cause) {
    case NodeCause::kNone:
      return "";
    case NodeCause::kLostArgMax:
      return "lost arg-max";
    case NodeCause::kSampledOut:
      return "sampled out";
    case NodeCause::kCutByTopK:
      return "cut by top-k";
    case NodeCause::kCutByTopP:
      return "cut by top-p";
    case NodeCause::kCutByMinP:
      return "cut by min-p";
    case NodeCause::kCutByTopNSigma:
      return "cut by top-n-sigma";
    case NodeCause::kCutByTypicalP:
      return "cut by typical-p";
    case NodeCause::kExcluded:
      return "excluded by XTC";
    case NodeCause::kForbidden:
      return "forbidden";
    case NodeCause::kNotReached:
      return "not reached";
    case NodeCause::kPastStop:
      return "past stop";
    case NodeCause::kOverBudget:
      return "over budget";
    case NodeCause::kOutsideVocabulary:
      return "outside the vocabulary";
  }
  return "";
}

StepTracer::StepTracer(TraceSink sink, int64_t vocab_size, const Model& target)
    : sink_(std::move(sink)), vocab_size_(vocab_size), target_(target), first_start_ms_(now_ms()) {}

void StepTracer::start_step(double start_ms, std::span<const SequencePlan> plans) {
  start_ms_ = start_ms;
  own_ms_ = 0;
  orders_before_ = orders_to_device(target_);
  plans_ = plans;
  followed_.clear();
  followed_.resize(plans.size());
  for (size_t i = 0; i < plans.size(); ++i) {
    StepTrace& trace = followed_[i].trace;
    trace.step = next_step_;
    trace.request = plans[i].sequence->id();
    trace.start_ms = start_ms_ - first_start_ms_;
    trace.sequences = static_cast<int>(plans.size());
    followed_[i].state = plans[i].sequence->constraint_state();
    trace.prompt_rows = plans[i].prefill_tokens;
    trace.context = static_cast<int64_t>(plans[i].sequence->tokens().size());
  }
  ++next_step_;
}

void StepTracer::add_nodes(size_t sequence, const TokenTree& drafted) {
  StepTrace& trace = followed_[sequence].trace;
  const auto pending = static_cast<size_t>(trace.context) - 1;
  if (drafted.size() == 0 || drafted.token(0) != plans_[sequence].sequence->tokens()[pending]) return;
  for (int node = 0; node < drafted.size(); ++node) {
    trace.nodes.push_back({.token = drafted.token(node),
                           .parent = drafted.parent(node),
                           .draft_probability = drafted.probability(node),
                           .sources = drafted.sources(node)});
  }
}

// Finds every drafted node in the verified tree by its path of tokens, which is unique because siblings hold
// different tokens.
void StepTracer::place_nodes(Followed& followed, const TokenTree& tree) const {
  followed.places.assign(1, 0);
  for (size_t i = 1; i < followed.trace.nodes.size(); ++i) {
    TraceNode& node = followed.trace.nodes[i];
    const int parent = followed.places[static_cast<size_t>(node.parent)];
    int place = parent < 0 ? tree.size() : parent + 1;
    while (place < tree.size() && (tree.parent(place) != parent || tree.token(place) != node.token)) ++place;
    followed.places.push_back(place < tree.size() ? place : -1);
    if (place < tree.size()) continue;
    node.fate = NodeFate::kOverBudget;
    const bool is_token = node.token >= 0 && node.token < vocab_size_;
    node.cause = is_token ? NodeCause::kOverBudget : NodeCause::kOutsideVocabulary;
  }
}

// For every drafted node, 1 if the constraint forbids it.
std::vector<uint8_t> StepTracer::forbidden_nodes(size_t sequence) const {
  const Followed& followed = followed_[sequence];
  std::vector<uint8_t> forbidden(followed.trace.nodes.size(), 0);
  TokenConstraint* constraint = plans_[sequence].sequence->constraint();
  std::vector<TokenConstraint::State> states = {followed.state};
  for (size_t i = 1; constraint != nullptr && i < forbidden.size(); ++i) {
    const TraceNode& node = followed.trace.nodes[i];
    const ConstraintMove move = advanced(*constraint, states[static_cast<size_t>(node.parent)], node.token);
    states.push_back(move.state);
    forbidden[i] = move.is_allowed ? 0 : 1;
  }
  return forbidden;
}

void StepTracer::reach(size_t sequence, const TokenTree& tree, int node, std::span<const float> logits) {
  const double start = now_ms();
  Followed& followed = followed_[sequence];
  const Sequence& reached = *plans_[sequence].sequence;
  const SamplingParams& sampling = reached.request().sampling;
  followed.reached.push_back(node);
  const int64_t position = std::ssize(reached.tokens()) + tree.depth(node);
  const double draw = reached.randomness.exclusion_draw(position);
  followed.distributions.push_back(
      processor_.build(logits, shown_distribution(sampling), reached.history, draw));
  const bool is_greedy = sampling.temperature == 0.0;
  followed.refusals.resize(static_cast<size_t>(tree.size()),
                           is_greedy ? NodeCause::kLostArgMax : NodeCause::kSampledOut);
  for (int child = node + 1; child < tree.size() && !is_greedy; ++child) {
    if (tree.parent(child) != node || probability(followed.distributions.back(), tree.token(child)) > 0.0)
      continue;
    followed.refusals[static_cast<size_t>(child)] = filter_that_cut(tree.token(child), reached, logits);
  }
  own_ms_ += now_ms() - start;
}

// Finds the filter that removed the token by adding the filters one by one, in the order in which they are
// applied.
NodeCause StepTracer::filter_that_cut(TokenId token, const Sequence& sequence,
                                      std::span<const float> logits) {
  const SamplingParams& sampling = sequence.request().sampling;
  SamplingParams open = sampling;
  const auto is_gone = [&] {
    return probability(processor_.build(logits, open, sequence.history), token) == 0.0;
  };
  open.drop_truncation();
  if (is_gone()) return NodeCause::kForbidden;
  open.top_n_sigma = sampling.top_n_sigma;
  if (is_gone()) return NodeCause::kCutByTopNSigma;
  open.top_k = sampling.top_k;
  if (is_gone()) return NodeCause::kCutByTopK;
  open.typical_p = sampling.typical_p;
  if (is_gone()) return NodeCause::kCutByTypicalP;
  open.top_p = sampling.top_p;
  if (is_gone()) return NodeCause::kCutByTopP;
  open.min_p = sampling.min_p;
  return is_gone() ? NodeCause::kCutByMinP : NodeCause::kExcluded;
}

void StepTracer::explain_nodes(Followed& followed, const TokenTree& tree, const Verdict& verdict) const {
  std::vector<TraceNode>& nodes = followed.trace.nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (const int place = followed.places[i]; place >= 0) {
      const bool is_past = std::cmp_greater(tree.depth(place), verdict.tokens.size());
      const NodeFate fate = verdict.fates[static_cast<size_t>(place)];
      nodes[i].fate = is_past && fate == NodeFate::kRejected ? NodeFate::kPastStop : fate;
      nodes[i].cause = cause_of(nodes[i].fate, followed.refusals[static_cast<size_t>(place)]);
    }
    if (i == 0) continue;
    const int parent = followed.places[static_cast<size_t>(nodes[i].parent)];
    if (parent < 0) continue;
    const auto depth = static_cast<size_t>(tree.depth(parent));
    if (depth < followed.reached.size() && followed.reached[depth] == parent)
      nodes[i].target_probability = probability(followed.distributions[depth], nodes[i].token);
  }
}

void StepTracer::record(size_t sequence, const TokenTree& tree, const Verdict& verdict) {
  Followed& followed = followed_[sequence];
  if (followed.trace.nodes.empty()) add_nodes(sequence, tree);
  place_nodes(followed, tree);
  const std::vector<uint8_t> forbidden = forbidden_nodes(sequence);
  for (size_t i = 1; i < forbidden.size(); ++i) {
    TraceNode& node = followed.trace.nodes[i];
    if (forbidden[i] != 0 && node.cause == NodeCause::kOverBudget) node.cause = NodeCause::kForbidden;
  }
  explain_nodes(followed, tree, verdict);
  StepTrace& trace = followed.trace;
  trace.tokens = verdict.tokens;
  trace.origins = verdict.origins;
  for (size_t i = 0; i < verdict.tokens.size(); ++i) {
    const auto parent = std::find(followed.places.begin(), followed.places.end(), verdict.path[i]);
    trace.probabilities.push_back(probability(followed.distributions[i], verdict.tokens[i]));
    trace.likelier.push_back(mass_before(followed.distributions[i], verdict.tokens[i]));
    trace.ranks.push_back(
        rank_of(verdict.tokens[i], static_cast<int>(parent - followed.places.begin()), trace.nodes));
  }
}

void StepTracer::observe(const StepReport& report) {
  const double start = now_ms();
  for (size_t i = 0; i < report.sequences.size(); ++i) {
    const SequenceStep& step = report.sequences[i];
    if (step.plan.decodes) record(i, step.tree, step.verdict);
    StepTrace& trace = followed_[i].trace;
    trace.draft_ms = report.times.drafting();
    trace.verify_ms = report.times.forward;
    trace.rows = report.rows;
    trace.draft_failed = report.draft_failed && plans_[i].max_draft_len > 0 && !step.is_predicted;
    trace.is_predicted = step.is_predicted && trace.nodes.size() > 1;
    if (trace.is_predicted) std::ranges::for_each(trace.nodes, [](TraceNode& node) { node.sources = 0; });
  }
  own_ms_ += now_ms() - start;
}

void StepTracer::finish_step() {
  const double total_ms = now_ms() - start_ms_ - own_ms_;
  std::optional<DeviceOrders> orders;
  if (orders_before_) orders = *orders_to_device(target_) - *orders_before_;
  for (Followed& followed : followed_) {
    followed.trace.device = orders;
    followed.trace.other_ms = total_ms - followed.trace.draft_ms - followed.trace.verify_ms;
    sink_(followed.trace);
  }
}

}  // namespace outrider
