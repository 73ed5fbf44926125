// SPDX-License-Identifier: Apache-2.0
#include "speculation/tree/tree_growth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/portable_math.h"
#include "sampling/token_mask.h"
#include "speculation/tree/acceptance_estimates.h"
#include "speculation/tree/proposal.h"

namespace outrider {
namespace {

// Tokens beyond the children asked for that the target may choose in their place: the chance of an only child
// would otherwise always be 1.
constexpr int kRivals = 8;
// A probability of 1 would mean that nothing is known of the node.
constexpr double kMostCertain = 1.0 - 1e-9;

double probability_of(const Distribution& distribution, TokenId token) {
  const auto found = std::ranges::lower_bound(distribution.tokens, token);
  if (found == distribution.tokens.end() || *found != token) return 0.0;
  return distribution.probabilities[static_cast<size_t>(found - distribution.tokens.begin())];
}

// -sum p log p, in nats.
double entropy(const Distribution& distribution) {
  double sum = 0.0;
  for (const double p : distribution.probabilities) sum -= p > 0.0 ? p * portable_log(p) : 0.0;
  return sum;
}

// SVIP (2411.18462): a draft from a distribution with entropy H is accepted with probability at least
// 1 - sqrt(c H); this is sqrt(c H).
double svip_uncertainty(double entropy) {
  constexpr double kScale = 0.15;
  return std::sqrt(kScale * entropy);
}

}  // namespace

GrowthOptions growth_options(const SpeculativeOptions& options, const TreePolicy* policy) {
  return {.policy = policy,
          .children = options.tree.children,
          .min_probability = options.stop.assistant_confidence_threshold,
          .max_uncertainty = options.stop.entropy_threshold,
          .temperature_factor = options.draft_temperature,
          .ranking_temperature = options.ranking_temperature > 0.0 ? options.ranking_temperature : 1.0};
}

void TreeGrowth::start(const GrowthOptions& options, const DraftRequest& request, TokenTree& tree,
                       TokenHistory& history) {
  options_ = &options;
  request_ = &request;
  tree_ = &tree;
  history_ = &history;
  randomness_ = CounterRandomness(request.sampling->seed, request.sample_index);
  sampling_ = *request.sampling;
  sampling_.temperature *= options.temperature_factor;
  ranking_ = sampling_;
  if (ranking_.temperature == 0.0) {
    ranking_.temperature = options.ranking_temperature;
    ranking_.drop_truncation();
  }
  const bool drops = options.policy->drops() && !draws();
  max_drafted_ = drops ? std::numeric_limits<int>::max() : request.max_nodes;
  scores_.assign(1, 1.0);
  states_.assign(1, request.constraint_state);
  next_.assign(1, 0);
  plan_level();
}

bool TreeGrowth::draws() const {
  return compares_distributions(request_->acceptance) && sampling_.temperature > 0.0 &&
         options_->children != ChildrenChoice::kTop;
}

bool TreeGrowth::wants_probabilities() const {
  return request_->wants_probabilities || request_->estimates != nullptr || options_->policy->drops() ||
         options_->min_probability > 0.0;
}

// Whether the probabilities of likeliest tokens are shares of the whole vocabulary: for thresholds, and for
// trees that nobody corrects. Estimates learn what shares of a few rivals are worth, and the sum over 49,152
// tokens takes 0.15 ms for every node, ten times as long as the search for the likeliest.
bool TreeGrowth::sums_all() const {
  return options_->min_probability > 0.0 || request_->estimates == nullptr;
}

// Makes the frontier of the nodes drafted last that the policy wants to expand; completes the tree if there
// are none.
void TreeGrowth::plan_level() {
  frontier_.swap(next_);
  const int depth = frontier_.empty() ? 0 : tree_->depth(frontier_.front());
  const int remaining_nodes = max_drafted_ - tree_->drafted();
  if (frontier_.empty() || depth >= request_->max_draft_len || remaining_nodes <= 0) {
    frontier_.clear();
  } else {
    children_ = options_->policy->plan_level({.tree = tree_,
                                              .depth = depth,
                                              .remaining_nodes = remaining_nodes,
                                              .remaining_depth = request_->max_draft_len - depth,
                                              .may_drop = !draws()},
                                             scores_, frontier_);
    if (children_ == 0) frontier_.clear();
    keep_worthwhile(depth);
  }
  if (frontier_.empty()) stop();
}

void TreeGrowth::stop() {
  frontier_.clear();
  top_nodes_.keep(*tree_, request_->max_nodes);
}

// Where time has a price, a node is expanded if its children are expected to add more accepted tokens than
// their rows and its part of the drafting time are worth. A level is drafted if all that its nodes add is
// worth its time.
void TreeGrowth::keep_worthwhile(int depth) {
  if (request_->rate == 0.0 || request_->estimates == nullptr || depth == 0) return;
  const double continuation = request_->estimates->continuation(depth);
  const double row_price = request_->rate * request_->row_ms;
  const double node_price = request_->rate * options_->level_time.ms_per_node();
  const auto gain = [&](int node) { return scores_[static_cast<size_t>(node)] * continuation - row_price; };
  std::erase_if(frontier_, [&](int node) { return gain(node) <= node_price; });
  if (request_->row_ms == 0.0 && !frontier_.empty()) {  // levels are explored, for which a path is enough
    frontier_.front() = *std::ranges::max_element(frontier_, {}, gain);
    frontier_.resize(1);
  }
  double sum = 0.0;
  for (const int node : frontier_) sum += gain(node);
  const double level_ms = options_->level_time.ms_of(static_cast<double>(frontier_.size()));
  if (sum <= request_->rate * level_ms) frontier_.clear();
}

void TreeGrowth::expand_node(int node, int count, std::span<const float> logits) {
  count = std::min(count, max_drafted_ - tree_->drafted());
  if (count <= 0) return;
  if (request_->constraint != nullptr) {
    mask_logits(logits, request_->constraint->allowed(states_[static_cast<size_t>(node)]), masked_);
    logits = masked_;
  }
  path_.clear();
  for (int ancestor = node; ancestor > 0; ancestor = tree_->parent(ancestor))
    path_.push_back(tree_->token(ancestor));
  for (size_t i = path_.size(); i > 0; --i) history_->push(path_[i - 1]);
  const size_t before = next_.size();
  const bool is_greedy = sampling_.temperature == 0.0;
  if (draws()) {
    add_drawn(node, count, logits);
  } else if (request_->acceptance == AcceptanceRule::kCoupled && !is_greedy &&
             options_->children != ChildrenChoice::kTop) {
    add_coupled(node, count, logits);
  } else {
    add_likeliest(node, count, logits);
  }
  if (options_->max_uncertainty > 0.0 && uncertainty(logits) > options_->max_uncertainty)
    next_.resize(before);
  for (size_t i = 0; i < path_.size(); ++i) history_->pop();
}

void TreeGrowth::add(int node, TokenId token, double probability, double confidence) {
  register_child(node, tree_->add(node, token, probability), confidence);
}

// Records the score and constraint state of a new child and schedules it for expansion. A child of which the
// drafter is less sure than the threshold ends its branch but stays in the tree. Nothing is drafted after the
// end of the output. `confidence`: the drafter's probability of its token.
void TreeGrowth::register_child(int node, int child, double confidence) {
  const double probability = tree_->probability(child);
  const double worth = request_->estimates == nullptr
                           ? probability
                           : request_->estimates->estimate(tree_->depth(child), probability);
  scores_.push_back(scores_[static_cast<size_t>(node)] * worth);
  bool may_go_on = true;
  if (TokenConstraint* constraint = request_->constraint) {
    states_.push_back(constraint->advance(states_[static_cast<size_t>(node)], tree_->token(child)));
    may_go_on = states_.back() != TokenConstraint::kDead && !constraint->is_complete(states_.back());
  }
  if (may_go_on && !(confidence < options_->min_probability)) next_.push_back(child);
}

int64_t TreeGrowth::position_after(int node) const {
  return static_cast<int64_t>(request_->tokens.size()) + tree_->depth(node);
}

void TreeGrowth::add_likeliest(int node, int count, std::span<const float> logits) {
  if (count == 1 && sampling_.temperature == 0.0 && !wants_probabilities()) {
    const TokenId token = chooser_.choose(logits, sampling_, *history_, {});
    if (token >= 0) add(node, token, 1.0, 1.0);
    return;
  }
  const bool is_greedy = sampling_.temperature == 0.0;
  if (is_greedy) ranking_.top_k = sums_all() ? 0 : count + kRivals;
  const double draw = randomness_.exclusion_draw(position_after(node));
  const Distribution& distribution =
      is_greedy && sums_all() ? logits_processor_.list_likeliest(count, logits, ranking_, *history_)
                              : logits_processor_.build(logits, ranking_, *history_, draw);
  order_.resize(distribution.tokens.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  const auto kept = std::min(order_.size(), static_cast<size_t>(count));
  std::partial_sort(order_.begin(), order_.begin() + static_cast<ptrdiff_t>(kept), order_.end(),
                    [&](size_t a, size_t b) {
                      const double p_a = distribution.probabilities[a];
                      const double p_b = distribution.probabilities[b];
                      return p_a != p_b ? p_a > p_b : a < b;
                    });
  for (size_t i = 0; i < kept; ++i) {
    const double probability = distribution.probabilities[order_[i]];
    add(node, distribution.tokens[order_[i]], std::min(probability, kMostCertain), probability);
  }
}

void TreeGrowth::add_coupled(int node, int count, std::span<const float> logits) {
  const int rivals = wants_probabilities() ? kRivals : 0;
  const int64_t position = position_after(node);
  const auto first =
      chooser_.choose_first(count + rivals, logits, sampling_, *history_, {&randomness_, position});
  // The target is likely to choose one of these tokens too; the chance of each is guessed by the softmax of
  // log q + g over them.
  const Distribution* distribution = nullptr;
  if (options_->min_probability > 0.0)
    distribution =
        &logits_processor_.build(logits, sampling_, *history_, randomness_.exclusion_draw(position));
  double sum = 0.0;
  for (const Arrival& arrival : first) sum += 1.0 / arrival.time;
  const auto kept = std::min(first.size(), static_cast<size_t>(count));
  for (size_t i = 0; i < kept; ++i) {
    const double share = 1.0 / (first[i].time * sum);
    const double confidence = distribution == nullptr ? 1.0 : probability_of(*distribution, first[i].token);
    add(node, first[i].token, rivals > 0 && share > 0.0 && share <= 1.0 ? share : 1.0, confidence);
  }
}

void TreeGrowth::add_drawn(int node, int count, std::span<const float> logits) {
  const Distribution& distribution =
      logits_processor_.build(logits, sampling_, *history_, randomness_.exclusion_draw(position_after(node)));
  if (distribution.empty()) return;
  // Under the rejection rule a draw passes with the overlap of p and q, independently of the token drawn.
  constexpr double kMin = 0.05;
  const double agreement = std::clamp(1.0 - svip_uncertainty(entropy(distribution)), kMin, 1.0);
  guesses_.assign(1, agreement);
  while (std::cmp_less(guesses_.size(), count))
    guesses_.push_back(guesses_.back() * std::max(kMin, 1.0 - agreement));
  const int before = tree_->size();
  const bool is_independent = options_->children == ChildrenChoice::kIndependent;
  propose({.tree = tree_,
           .node = node,
           .distribution = &distribution,
           .count = count,
           .position = position_after(node),
           .rule = request_->acceptance,
           .kind = is_independent ? ChildrenKind::kIndependent : ChildrenKind::kSampled,
           .randomness = options_->draws != nullptr ? options_->draws : &randomness_,
           .first_draw = first_draw(node),
           .probabilities = guesses_});
  for (int child = before; child < tree_->size(); ++child)
    register_child(node, child, probability_of(distribution, tree_->token(child)));
}

// Numbers the draws so that no two nodes, drafters or steps share one. The number of children of a node may
// depend on draws at other nodes, and several drafters may draw at one node. Under the block rule draws
// beyond the accepted nodes decide how many are accepted. Steps that draft at one position do so at other
// depths.
uint64_t TreeGrowth::first_draw(int node) const {
  constexpr int kNodeShift = 16;
  constexpr int kSourceShift = 48;
  constexpr int kDepthShift = 53;
  return static_cast<uint64_t>(tree_->depth(node)) << kDepthShift |
         static_cast<uint64_t>(request_->source) << kSourceShift | static_cast<uint64_t>(node) << kNodeShift;
}

double TreeGrowth::uncertainty(std::span<const float> logits) {
  if (sampling_.temperature == 0.0) ranking_.top_k = 0;
  return svip_uncertainty(entropy(logits_processor_.build(logits, ranking_, *history_)));
}

}  // namespace outrider
