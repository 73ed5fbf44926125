// SPDX-License-Identifier: Apache-2.0
#include "outrider/token_tree.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr int kNoDistribution = -1;
constexpr uint32_t kFirstSource = 1;

}  // namespace

void TokenTree::reset(TokenId pending) {
  tokens_.assign(1, pending);
  parents_.assign(1, -1);
  depths_.assign(1, 0);
  probabilities_.assign(1, 1.0);
  sources_.assign(1, kFirstSource);
  distribution_index_.assign(1, kNoDistribution);
  proposals_.clear();
  distribution_count_ = 0;
}

void TokenTree::reserve(int nodes) {
  const auto count = static_cast<size_t>(nodes);
  for (std::vector<int>* numbers : {&parents_, &depths_, &distribution_index_, &new_index_})
    numbers->reserve(count);
  tokens_.reserve(count);
  probabilities_.reserve(count);
  sources_.reserve(count);
  proposals_.reserve(count);
}

int TokenTree::add(int parent, TokenId token, double probability) {
  int child = parent + 1;
  while (child < size() && (this->parent(child) != parent || this->token(child) != token)) ++child;
  const int distribution = distribution_index_[static_cast<size_t>(parent)];
  const bool is_new = child == size();
  // A repeated draw is another proposal, because it changes the distribution that later draws are tested
  // against; a repeated chosen token is not.
  if (is_new || distribution != kNoDistribution) proposals_.push_back({parent, child, distribution});
  if (!is_new) return child;
  tokens_.push_back(token);
  parents_.push_back(parent);
  depths_.push_back(depth(parent) + 1);
  probabilities_.push_back(probability);
  sources_.push_back(kFirstSource);
  distribution_index_.push_back(kNoDistribution);
  return child;
}

void TokenTree::repeat(int child) {
  const int parent = this->parent(child);
  proposals_.push_back({parent, child, distribution_index_[static_cast<size_t>(parent)]});
}

void TokenTree::set_distribution(int node, const Distribution& distribution, ChildrenKind kind) {
  distribution_index_[static_cast<size_t>(node)] = static_cast<int>(distribution_count_++);
  if (distributions_.size() < distribution_count_) distributions_.emplace_back();
  distributions_[distribution_count_ - 1].distribution = distribution;
  distributions_[distribution_count_ - 1].kind = kind;
}

void TokenTree::merge(const TokenTree& other, int source) {
  const uint32_t bit = uint32_t{1} << source;
  sources_[0] = size() == 1 ? bit : sources_[0] | bit;
  new_index_.assign(static_cast<size_t>(other.size()), 0);
  new_distribution_.assign(other.distribution_count_, kNoDistribution);
  for (const Proposal& proposal : other.proposals_) {
    const int parent = new_index_[static_cast<size_t>(proposal.parent)];
    int& distribution = distribution_index_[static_cast<size_t>(parent)];
    distribution = kNoDistribution;
    if (proposal.distribution != kNoDistribution) {
      int& index = new_distribution_[static_cast<size_t>(proposal.distribution)];
      if (index == kNoDistribution) {
        set_distribution(parent, other.distribution_at(proposal.distribution),
                         other.kind_at(proposal.distribution));
        index = distribution;
      }
      distribution = index;
    }
    const int before = size();
    const size_t proposals = proposals_.size();
    const double probability = other.probability(proposal.child);
    const auto child = static_cast<size_t>(add(parent, other.token(proposal.child), probability));
    // A chosen token that another drafter drew is a second proposal, too: how many proposals a node has must
    // not depend on what was drawn.
    if (proposals_.size() == proposals) proposals_.push_back({parent, static_cast<int>(child), distribution});
    double& known = probabilities_[child];
    if (static_cast<int>(child) == before) {
      sources_[child] = 0;
    } else if ((sources_[child] & bit) == 0) {
      known = 1.0 - (1.0 - known) * (1.0 - probability);  // as if the drafters were independent
    }
    sources_[child] |= bit;
    new_index_[static_cast<size_t>(proposal.child)] = static_cast<int>(child);
  }
  new_index_.clear();
  new_distribution_.clear();
}

void TokenTree::keep(std::span<const uint8_t> kept) {
  new_index_.assign(tokens_.size(), -1);
  new_index_[0] = 0;
  int count = 1;
  for (int node = 1; node < size(); ++node) {
    const auto i = static_cast<size_t>(node);
    if (kept[i] == 0 || new_index_[static_cast<size_t>(parents_[i])] < 0) continue;
    const auto to = static_cast<size_t>(count);
    tokens_[to] = tokens_[i];
    parents_[to] = new_index_[static_cast<size_t>(parents_[i])];
    depths_[to] = depths_[i];
    probabilities_[to] = probabilities_[i];
    sources_[to] = sources_[i];
    new_index_[i] = count++;
  }
  std::erase_if(proposals_, [&](Proposal& proposal) {
    proposal.parent = new_index_[static_cast<size_t>(proposal.parent)];
    proposal.child = new_index_[static_cast<size_t>(proposal.child)];
    proposal.distribution = kNoDistribution;
    return proposal.parent < 0 || proposal.child < 0;
  });
  const auto size = static_cast<size_t>(count);
  tokens_.resize(size);
  parents_.resize(size);
  depths_.resize(size);
  probabilities_.resize(size);
  sources_.resize(size);
  distribution_index_.assign(size, kNoDistribution);
  distribution_count_ = 0;
  new_index_.clear();  // so that a copy of the tree does not copy the scratch
}

ChildrenKind TokenTree::children_kind(int node) const {
  const int index = distribution_index_[static_cast<size_t>(node)];
  return index == kNoDistribution ? ChildrenKind::kChosen : kind_at(index);
}

const Distribution& TokenTree::distribution(int node) const {
  static const Distribution kEmpty;
  const int index = distribution_index_[static_cast<size_t>(node)];
  return index == kNoDistribution ? kEmpty : distribution_at(index);
}

}  // namespace outrider
