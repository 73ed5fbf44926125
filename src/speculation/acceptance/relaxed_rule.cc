// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/portable_math.h"
#include "sampling/distribution.h"
#include "speculation/acceptance/node_choice.h"

namespace outrider {
namespace {

// Whether a token of probability p is among the k likeliest; ties go to the lower id.
bool is_among_top(const Distribution& distribution, TokenId token, double p, int k) {
  int before = 0;
  for (size_t i = 0; i < distribution.tokens.size() && before < k; ++i) {
    const double other = distribution.probabilities[i];
    before += other > p || (other == p && distribution.tokens[i] < token) ? 1 : 0;
  }
  return before < k;
}

}  // namespace

NodeChoice choose_relaxed(const ReachedNode& reached, const SpeculativeOptions& options, TokenId own) {
  const Distribution& distribution = reached.target_distribution;
  const TokenTree& tree = reached.tree;
  NodeChoice choice = choose_child(tree, reached.node, own);
  if (choice.accepted != kNoChild || distribution.empty()) return choice;
  const double largest =
      *std::max_element(distribution.probabilities.begin(), distribution.probabilities.end());
  const double min = options.relaxed.space == RelaxedSpace::kProbability
                         ? largest - options.relaxed.delta
                         : largest * portable_exp(-options.relaxed.delta);
  double best = 0.0;
  for (int child = next_child(tree, reached.node, reached.node); child != kNoChild;
       child = next_child(tree, reached.node, child)) {
    const TokenId token = tree.token(child);
    const double p = probability(distribution, token);
    if (p <= best || p < min || !is_among_top(distribution, token, p, options.relaxed.top_k)) continue;
    best = p;
    choice = {token, child};
  }
  return choice;
}

}  // namespace outrider
