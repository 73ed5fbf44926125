// SPDX-License-Identifier: Apache-2.0
#include "drafters/suffix/continuation_tree.h"

#include <algorithm>

namespace outrider {

SuffixPlace ContinuationTree::reset(PlaceRange range, int match) {
  match_ = match;
  samples_.clear();
  const int64_t count = std::min(range.size(), kSamples);
  const int64_t size = corpus_->text().size();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = corpus_->places()[static_cast<size_t>(range.begin + range.size() * i / count)];
    if (place >= size) continue;  // the file is damaged
    samples_.push_back(place);
    __builtin_prefetch(&corpus_->text().bytes[static_cast<size_t>(place * corpus_->text().width)]);
  }
  nodes_.assign(1, {.end = static_cast<int>(samples_.size())});
  return {0, match};
}

SuffixPlace ContinuationTree::likeliest_after(SuffixPlace place) {
  if (!node(place).is_grown) grow(place.node, place.depth - match_);
  return {node(place).first_child, place.depth + 1};
}

// Sorts the samples of a node by the token after it, and makes its children.
void ContinuationTree::grow(int index, int level) {
  const TokenText& text = corpus_->text();
  const Node parent = nodes_[static_cast<size_t>(index)];
  next_tokens_.clear();
  for (int i = parent.begin; i < parent.end; ++i) {
    const int64_t place = samples_[static_cast<size_t>(i)];
    const TokenId token = place + level < text.size() ? text[place + level] : text.separator;
    next_tokens_.emplace_back(token, place);
  }
  std::ranges::sort(next_tokens_);
  children_.clear();
  for (size_t i = 0; i < next_tokens_.size(); ++i) {
    const auto [token, place] = next_tokens_[i];
    const int at = parent.begin + static_cast<int>(i);
    samples_[static_cast<size_t>(at)] = place;
    if (token < 0 || token >= vocab_size_) continue;  // the document ends
    if (children_.empty() || children_.back().token != token)
      children_.push_back({.token = token, .begin = at});
    children_.back().end = at + 1;
  }
  std::ranges::sort(children_, [](const Node& a, const Node& b) {
    const int left = a.end - a.begin, right = b.end - b.begin;
    return left != right ? left > right : a.token < b.token;
  });
  const auto first = static_cast<int>(nodes_.size());
  for (size_t i = 0; i + 1 < children_.size(); ++i) children_[i].next = first + static_cast<int>(i) + 1;
  nodes_.insert(nodes_.end(), children_.begin(), children_.end());
  nodes_[static_cast<size_t>(index)].is_grown = true;
  nodes_[static_cast<size_t>(index)].first_child = children_.empty() ? kNoNode : first;
}

}  // namespace outrider
