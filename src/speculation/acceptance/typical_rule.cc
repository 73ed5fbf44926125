// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/portable_math.h"
#include "sampling/distribution.h"
#include "speculation/acceptance/node_choice.h"

namespace outrider {
namespace {

// exp(-H) with the entropy H in nats.
double typical_probability(const Distribution& distribution) {
  double sum = 0.0;
  for (const double p : distribution.probabilities) sum += p > 0.0 ? p * portable_log(p) : 0.0;
  return portable_exp(sum);
}

}  // namespace

NodeChoice choose_typical(const ReachedNode& reached, const SpeculativeOptions& options, TokenId own) {
  const Distribution& p = reached.target_distribution;
  double best = std::min(options.typical.epsilon, options.typical.delta * typical_probability(p));
  NodeChoice choice = {.token = own};
  const TokenTree& tree = reached.tree;
  for (int child = next_child(tree, reached.node, reached.node); child != kNoChild;
       child = next_child(tree, reached.node, child)) {
    const double here = probability(p, tree.token(child));
    if (!(here > best)) continue;
    best = here;
    choice = {tree.token(child), child};
  }
  return choice.accepted == kNoChild ? choose_child(tree, reached.node, own) : choice;
}

}  // namespace outrider
