// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "sampling/distribution.h"
#include "speculation/acceptance/node_choice.h"

namespace outrider {
namespace {

// Returns false and leaves `distribution` unchanged when it has no mass.
bool normalise(std::vector<double>& distribution) {
  const double sum = std::accumulate(distribution.begin(), distribution.end(), 0.0);
  if (!(sum > 0.0)) return false;
  for (double& probability : distribution) probability /= sum;
  return true;
}

// Replaces p by the normalised max(0, p - q); leaves p unchanged when p and q differ by rounding only.
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

// Conditions the distribution on not being `token`; leaves it unchanged when nothing else has mass.
void remove(Distribution& distribution, TokenId token) {
  const auto found = std::lower_bound(distribution.tokens.begin(), distribution.tokens.end(), token);
  if (found == distribution.tokens.end() || *found != token) return;
  double& mass = distribution.probabilities[static_cast<size_t>(found - distribution.tokens.begin())];
  const double removed = std::exchange(mass, 0.0);
  if (!normalise(distribution.probabilities)) mass = removed;
}

// A distribution that children of the node were drawn from, without the tokens that were rejected so far.
struct RemainingDraft {
  int distribution = 0;  // index in the tree
  bool is_usable = false;
  Distribution q;
};

RemainingDraft& remaining_draft(std::vector<RemainingDraft>& all, const ReachedNode& reached,
                                int distribution) {
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const RemainingDraft& one) { return one.distribution == distribution; });
  if (found != all.end()) return *found;
  all.push_back({distribution, can_have_drawn(reached.tree, reached.node, distribution),
                 reached.tree.distribution_at(distribution)});
  return all.back();
}

}  // namespace

bool can_have_drawn(const TokenTree& tree, int node, int distribution) {
  const Distribution& q = tree.distribution_at(distribution);
  const auto proposals = tree.proposals();
  return is_proper(q) && std::all_of(proposals.begin(), proposals.end(), [&](const Proposal& proposal) {
           return proposal.parent != node || proposal.distribution != distribution ||
                  probability(q, tree.token(proposal.child)) > 0.0;
         });
}

NodeChoice choose_by_rejection(const ReachedNode& reached, Randomness& randomness) {
  const TokenTree& tree = reached.tree;
  Distribution p = reached.target_distribution;
  std::vector<RemainingDraft> distributions;
  uint64_t draw = 0;
  for (const Proposal& proposal : tree.proposals()) {
    if (proposal.parent != reached.node) continue;
    const TokenId token = tree.token(proposal.child);
    RemainingDraft* drawn =
        proposal.distribution < 0 ? nullptr : &remaining_draft(distributions, reached, proposal.distribution);
    if (drawn != nullptr && !drawn->is_usable) drawn = nullptr;
    const double drafted = drawn == nullptr ? 1.0 : probability(drawn->q, token);
    if (randomness.bernoulli(probability(p, token) / drafted, reached.position, draw++))
      return {token, proposal.child};
    if (drawn == nullptr) {
      remove(p, token);
      continue;
    }
    subtract(p, drawn->q);
    if (tree.kind_at(proposal.distribution) == ChildrenKind::kSampled) remove(drawn->q, token);
  }
  const auto purpose = draw == 0 ? RandomPurpose::kToken : RandomPurpose::kResidual;
  return {p.tokens[randomness.categorical(p.probabilities, reached.position, purpose, 0)]};
}

}  // namespace outrider
