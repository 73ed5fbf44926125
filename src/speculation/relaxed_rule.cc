// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sampling/distribution.h"
#include "speculation/node_choice.h"

namespace outrider {
namespace {

// Whether a token of probability p is among the top k: fewer than k are likelier, or as likely with a lower
// id.
bool is_among_top(const Distribution& law, TokenId token, double p, int k) {
  int before = 0;
  for (size_t i = 0; i < law.tokens.size() && before < k; ++i) {
    const double other = law.probabilities[i];
    before += other > p || (other == p && law.tokens[i] < token) ? 1 : 0;
  }
  return before < k;
}

}  // namespace

NodeChoice choose_relaxed(const ReachedNode& reached, const SpeculativeOptions& options, TokenId own) {
  const Distribution& law = reached.target_law;
  const TokenTree& tree = reached.tree;
  NodeChoice choice = choose_child(tree, reached.node, own);
  if (choice.accepted != kNoChild || law.empty()) return choice;
  const double largest = *std::max_element(law.probabilities.begin(), law.probabilities.end());
  const double least = options.relaxed_space == RelaxedSpace::kProbability
                           ? largest - options.relaxed_delta
                           : largest * std::exp(-options.relaxed_delta);
  double best = 0.0;
  for (int child = next_child(tree, reached.node, reached.node); child != kNoChild;
       child = next_child(tree, reached.node, child)) {
    const TokenId token = tree.token(child);
    const double p = probability(law, token);
    if (p <= best || p < least || !is_among_top(law, token, p, options.relaxed_topk)) continue;
    best = p;
    choice = {token, child};
  }
  return choice;
}

}  // namespace outrider
