// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "outrider/drafter.h"
#include "outrider/engine.h"
#include "sampling/logits_processor.h"
#include "sampling/token_history.h"
#include "speculation/tree/top_nodes.h"
#include "speculation/tree/tree_policy.h"

namespace outrider {

// What a drafter's trees look like; the same for all its sequences.
struct GrowthOptions {
  const TreePolicy* policy = nullptr;
  ChildrenChoice children = ChildrenChoice::kSampled;
  double min_probability = 0.0;  // a node below it is not expanded; 0: all are
  double max_uncertainty =
      0.0;  // nor one from a distribution with sqrt(0.15 * entropy) above this; 0: all are
  double temperature_factor = 1.0;  // on the request's temperature: a draft that is too sure is asked above 1
  double ranking_temperature = 1.0;  // of the distributions that rank nodes where the request is greedy
  double level_ms = 0.0;        // what a level costs one sequence, for requests that say what time is worth
  Randomness* draws = nullptr;  // instead of the request's: tests enumerate it
};
GrowthOptions growth_options(const SpeculativeOptions& options, const TreePolicy* policy);

// Grows the tree of one sequence, level by level, from the draft's logits after the nodes of its frontier.
// Every drafter with probabilities grows its trees this way, whatever network it runs. Children are proposed
// as the acceptance rule wants them: greedily the likeliest; under the coupled rule the first of log q + g
// with the target's own noise g; under rejection drawn from q, with the distribution kept; likeliest ones
// where asked.
class TreeGrowth {
 public:
  // `tree` holds the pending token alone, `history` all tokens of the request; both live until the growth
  // ends.
  void start(const GrowthOptions& options, const DraftRequest& request, TokenTree& tree,
             TokenHistory& history);

  // Nodes after which logits are wanted; empty: the tree is grown.
  std::span<const int> frontier() const { return frontier_; }

  // logits_after(i): the draft's logits [vocab] after frontier()[i].
  template <typename LogitsAfter>
  void expand(LogitsAfter&& logits_after) {
    next_.clear();
    const int children = children_;
    for (size_t i = 0; i < frontier_.size(); ++i) {
      expand_node(frontier_[i], options_->policy->children_of(*tree_, frontier_[i], children),
                  logits_after(i));
    }
    plan_level();
  }

  // The tree stays as it is, but for nodes beyond the limit.
  void stop();

  const DraftRequest& request() const { return *request_; }
  TokenTree& tree() const { return *tree_; }

 private:
  void expand_node(int node, int count, std::span<const float> logits);
  void plan_level();
  bool pays(int depth) const;
  void add_likeliest(int node, int count, std::span<const float> logits);
  void add_coupled(int node, int count, std::span<const float> logits);
  void add_drawn(int node, int count, std::span<const float> logits);
  void add(int node, TokenId token, double probability);
  void enter(int node, int child);  // a new child of the node
  double uncertainty(std::span<const float> logits);
  bool draws() const;  // nodes keep the distribution they were drawn from
  uint64_t first_draw(int node) const;
  bool wants_probabilities() const;

  const GrowthOptions* options_ = nullptr;
  const DraftRequest* request_ = nullptr;
  TokenTree* tree_ = nullptr;
  TokenHistory* history_ = nullptr;
  CounterRandomness randomness_{0, 0};
  SamplingParams sampling_;  // the draft's: the request's at its own temperature
  SamplingParams ranking_;   // for the order of the likeliest: at temperature 0 that of temperature 1
  LogitsProcessor distributions_;
  CoupledChooser chooser_;
  int children_ = 0;    // asked of each node of the frontier
  int candidates_ = 0;  // nodes that may be drafted, those dropped in the end included
  std::vector<TokenConstraint::State> states_;  // by node, of the request's constraint, if it has one
  std::vector<double> scores_;  // by node: product of what the probabilities on its path are worth
  std::vector<int> frontier_, next_;
  // Scratch.
  std::vector<float> masked_;
  std::vector<size_t> order_;
  std::vector<double> guesses_;
  TopNodes likeliest_;
  std::vector<TokenId> path_;
};

}  // namespace outrider
