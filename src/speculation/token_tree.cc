// SPDX-License-Identifier: Apache-2.0
#include "outrider/token_tree.h"

namespace outrider {
namespace {

constexpr int kNoLaw = -1;

}  // namespace

void TokenTree::reset(TokenId pending) {
  tokens_.assign(1, pending);
  parents_.assign(1, -1);
  depths_.assign(1, 0);
  law_index_.assign(1, kNoLaw);
  law_count_ = 0;
}

int TokenTree::add(int parent, TokenId token) {
  for (int node = parent + 1; node < size(); ++node) {
    if (this->parent(node) == parent && this->token(node) == token) return node;
  }
  const int child_depth = depth(parent) + 1;
  tokens_.push_back(token);
  parents_.push_back(parent);
  depths_.push_back(child_depth);
  law_index_.push_back(kNoLaw);
  return size() - 1;
}

void TokenTree::set_law(int node, const Distribution& law) {
  int& index = law_index_[static_cast<size_t>(node)];
  if (index == kNoLaw) {
    index = static_cast<int>(law_count_++);
    if (laws_.size() < law_count_) laws_.emplace_back();
  }
  laws_[static_cast<size_t>(index)] = law;
}

ChildrenKind TokenTree::children_kind(int node) const {
  return law_index_[static_cast<size_t>(node)] == kNoLaw ? ChildrenKind::kChosen : ChildrenKind::kSampled;
}

const Distribution& TokenTree::law(int node) const {
  static const Distribution kEmpty;
  const int index = law_index_[static_cast<size_t>(node)];
  return index == kNoLaw ? kEmpty : laws_[static_cast<size_t>(index)];
}

}  // namespace outrider
