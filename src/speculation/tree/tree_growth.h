// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "outrider/drafter.h"
#include "outrider/engine.h"
#include "sampling/logits_processor.h"
#include "sampling/token_history.h"
#include "speculation/tree/level_time.h"
#include "speculation/tree/top_nodes.h"
#include "speculation/tree/tree_policy.h"

namespace outrider {

// How a drafter grows its trees; shared by all its sequences.
struct GrowthOptions {
  const TreePolicy* policy = nullptr;
  ChildrenChoice children = ChildrenChoice::kSampled;
  // A child whose token has a probability below this, among all tokens that the drafter may choose, is not
  // expanded (Hugging Face's confidence threshold); 0: off.
  double min_probability = 0.0;
  // Children drawn from a distribution with sqrt(0.15 * entropy in nats) above this are not expanded (SVIP's
  // entropy threshold); 0: off.
  double max_uncertainty = 0.0;
  double temperature_factor = 1.0;   // multiplies the request's temperature; above 1 for overconfident drafts
  double ranking_temperature = 1.0;  // temperature of the probabilities that rank nodes of greedy requests
  LevelTime level_time = {};         // for requests with a rate
  Randomness* draws = nullptr;       // replaces the request's randomness in tests that enumerate the draws
};
GrowthOptions growth_options(const SpeculativeOptions& options, const TreePolicy* policy);

// Grows the tree of one sequence level by level from the draft's logits after the nodes of its frontier;
// every drafter with probabilities grows its trees with it. A node's children are the likeliest tokens if the
// request is greedy or options.children is kTop. Otherwise the acceptance rule decides. Under the coupled
// rule they are the largest of log q + g with the target's own Gumbel noise g (2408.07978). Under the
// rejection rule they are drawn from q, and the tree keeps q.
class TreeGrowth {
 public:
  // Plans the first level. `tree` holds the pending token only, `history` all tokens of the request. All
  // arguments must live until the frontier is empty.
  void start(const GrowthOptions& options, const DraftRequest& request, TokenTree& tree,
             TokenHistory& history);

  // The nodes after which logits are needed next; empty when the tree is complete.
  std::span<const int> frontier() const { return frontier_; }

  // Adds the next level. logits_after(i) returns the draft's logits [vocab] after frontier()[i].
  template <typename LogitsAfter>
  void expand(LogitsAfter&& logits_after) {
    next_.clear();
    const int max_children = request_->max_children;
    const int children = max_children > 0 ? std::min(max_children, children_) : children_;
    for (size_t i = 0; i < frontier_.size(); ++i) {
      expand_node(frontier_[i], options_->policy->children_of(*tree_, frontier_[i], children),
                  logits_after(i));
    }
    plan_level();
  }

  // Leaves the nodes of the frontier for which keeps(node) is false without children.
  template <typename Keeps>
  void retain(Keeps&& keeps) {
    std::erase_if(frontier_, [&](int node) { return !keeps(node); });
    if (frontier_.empty()) stop();
  }

  // Ends the growth and cuts the tree down to the request's node limit.
  void stop();

  const DraftRequest& request() const { return *request_; }
  TokenTree& tree() const { return *tree_; }

 private:
  void expand_node(int node, int count, std::span<const float> logits);
  void plan_level();
  void keep_worthwhile(int depth);
  int64_t position_after(int node) const;  // of the token after it
  void add_likeliest(int node, int count, std::span<const float> logits);
  void add_coupled(int node, int count, std::span<const float> logits);
  void add_drawn(int node, int count, std::span<const float> logits);
  void add(int node, TokenId token, double probability, double confidence);
  void register_child(int node, int child, double confidence);
  double uncertainty(std::span<const float> logits);
  bool draws() const;  // whether children are drawn from q and the tree keeps q
  uint64_t first_draw(int node) const;
  bool wants_probabilities() const;
  bool sums_all() const;

  const GrowthOptions* options_ = nullptr;
  const DraftRequest* request_ = nullptr;
  TokenTree* tree_ = nullptr;
  TokenHistory* history_ = nullptr;
  CounterRandomness randomness_{0, 0};
  SamplingParams sampling_;  // the request's with the draft's temperature
  SamplingParams ranking_;   // for the probabilities of likeliest tokens; its temperature is never 0
  LogitsProcessor logits_processor_;
  CoupledChooser chooser_;
  int children_ = 0;     // largest number of children of a frontier node
  int max_drafted_ = 0;  // nodes that may be drafted, including nodes dropped in the end
  std::vector<TokenConstraint::State> states_;  // by node: state of the request's constraint, if it has one
  std::vector<double> scores_;        // by node: estimated probability that the path to it is accepted
  std::vector<int> frontier_, next_;  // nodes to expand now and in the next level
  // Scratch.
  std::vector<float> masked_;
  std::vector<size_t> order_;
  std::vector<double> guesses_;
  TopNodes top_nodes_;
  std::vector<TokenId> path_;
};

}  // namespace outrider
