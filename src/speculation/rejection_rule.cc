// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "sampling/distribution.h"
#include "speculation/node_choice.h"

namespace outrider {
namespace {

// False, with `law` left as it is, when there is no mass.
bool normalise(std::vector<double>& law) {
  const double sum = std::accumulate(law.begin(), law.end(), 0.0);
  if (!(sum > 0.0)) return false;
  for (double& probability : law) probability /= sum;
  return true;
}

// A drafted law that cannot be what the children were drawn from is not used: they count as chosen, which is
// lossless however they came about.
bool ratio_test_applies(const ReachedNode& reached) {
  if (reached.tree.children_kind(reached.node) != ChildrenKind::kSampled) return false;
  const Distribution& q = reached.tree.law(reached.node);
  if (!is_proper(q)) return false;
  int child = next_child(reached.tree, reached.node, reached.node);
  while (child != kNoChild && probability(q, reached.tree.token(child)) > 0.0) {
    child = next_child(reached.tree, reached.node, child);
  }
  return child == kNoChild;
}

// max(0, p - q); p itself when p and q agree but for rounding.
void subtract(Distribution& p, const Distribution& q) {
  std::vector<double> residual = p.probabilities;
  size_t j = 0;
  for (size_t i = 0; i < p.tokens.size(); ++i) {
    while (j < q.tokens.size() && q.tokens[j] < p.tokens[i]) ++j;
    if (j == q.tokens.size()) break;
    if (q.tokens[j] == p.tokens[i]) residual[i] = std::max(0.0, residual[i] - q.probabilities[j]);
  }
  if (normalise(residual)) p.probabilities = std::move(residual);
}

// The law given that it is not `token`; unchanged when that leaves no mass.
void remove(Distribution& law, TokenId token) {
  const auto found = std::lower_bound(law.tokens.begin(), law.tokens.end(), token);
  if (found == law.tokens.end() || *found != token) return;
  double& mass = law.probabilities[static_cast<size_t>(found - law.tokens.begin())];
  const double removed = std::exchange(mass, 0.0);
  if (!normalise(law.probabilities)) mass = removed;
}

}  // namespace

NodeChoice choose_by_rejection(const ReachedNode& reached, Randomness& randomness) {
  int child = next_child(reached.tree, reached.node, reached.node);
  if (child == kNoChild) {
    const Distribution& p = reached.target_law;
    return {p.tokens[randomness.categorical(p.probabilities, reached.position, RandomPurpose::kToken, 0)]};
  }
  const bool sampled = ratio_test_applies(reached);
  Distribution p = reached.target_law;
  Distribution q = sampled ? reached.tree.law(reached.node) : Distribution{};
  uint64_t draw = 0;
  for (; child != kNoChild; child = next_child(reached.tree, reached.node, child)) {
    const TokenId token = reached.tree.token(child);
    const double drafted = sampled ? probability(q, token) : 1.0;
    if (randomness.bernoulli(probability(p, token) / drafted, reached.position, draw++))
      return {token, child};
    if (sampled) {
      subtract(p, q);
      remove(q, token);
    } else {
      remove(p, token);
    }
  }
  return {p.tokens[randomness.categorical(p.probabilities, reached.position, RandomPurpose::kResidual, 0)]};
}

}  // namespace outrider
