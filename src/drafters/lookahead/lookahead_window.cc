// SPDX-License-Identifier: Apache-2.0
#include "drafters/lookahead/lookahead_window.h"

#include <algorithm>

#include "base/counter_rng.h"

namespace outrider {
namespace {

constexpr int kAbsent = -1;
constexpr double kNoOpinion = 1.0;
constexpr double kUnlikely = 0.05;  // cells of the window are there to be learned from

int add_child(const DraftRequest& request, TokenTree& tree, int parent, TokenId token, double probability) {
  const bool is_full = tree.depth(parent) == request.max_draft_len || tree.drafted() == request.max_nodes;
  return is_full ? kAbsent : tree.add(parent, token, probability);
}

int find_child(const TokenTree& tree, int parent, TokenId token) {
  for (int node = parent + 1; node < tree.size(); ++node) {
    if (tree.parent(node) == parent && tree.token(node) == token) return node;
  }
  return kAbsent;
}

}  // namespace

void LookaheadPool::add(TokenId key, std::span<const TokenId> continuation) {
  if (max_ == 0) return;
  std::vector<TokenId>& kept = continuations_[key];
  const auto length = static_cast<std::ptrdiff_t>(length_);
  for (auto one = kept.begin(); one != kept.end(); one += length) {
    if (!std::equal(continuation.begin(), continuation.end(), one)) continue;
    std::rotate(one, one + length, kept.end());
    return;
  }
  if (kept.size() == max_ * length_) kept.erase(kept.begin(), kept.begin() + length);
  kept.insert(kept.end(), continuation.begin(), continuation.end());
}

std::span<const TokenId> LookaheadPool::continuations(TokenId key) const {
  const auto found = continuations_.find(key);
  return found == continuations_.end() ? std::span<const TokenId>() : found->second;
}

void LookaheadWindow::move_to(const DraftRequest& request) {
  position_ = static_cast<int64_t>(request.tokens.size()) - 1;
  const auto prompt = request.tokens.first(static_cast<size_t>(request.prompt_length));
  for (size_t i = 0; i < levels_.size(); ++i) {
    Level& level = levels_[i];
    const int64_t start = position_ + (i == 0 ? 1 : static_cast<int64_t>(i));
    const auto size = static_cast<size_t>(i == 0 ? columns() - 1 : columns());
    const int64_t passed = std::clamp<int64_t>(start - level.start, 0, std::ssize(level.tokens));
    level.tokens.erase(level.tokens.begin(), level.tokens.begin() + passed);
    level.tokens.resize(size, kUnknown);
    level.start = start;
    for (size_t cell = 0; cell < size; ++cell) {
      if (level.tokens[cell] != kUnknown) continue;
      level.tokens[cell] = lookahead_filler(prompt, request.sequence, i, start + static_cast<int64_t>(cell));
    }
  }
}

void LookaheadWindow::draft(const DraftRequest& request, TokenTree& tree) const {
  std::span<const TokenId> guesses = pool_.continuations(tree.token(0));
  const auto length = static_cast<size_t>(shape_.ngram - 1);
  for (; !guesses.empty(); guesses = guesses.first(guesses.size() - length)) {
    int node = 0;
    for (const TokenId token : guesses.last(length)) {
      if (node != kAbsent) node = add_child(request, tree, node, token, kNoOpinion);
    }
  }
  int top = 0;
  for (size_t column = 0; column < static_cast<size_t>(columns()) && top != kAbsent; ++column) {
    if (column > 0) top = add_child(request, tree, top, levels_[0].tokens[column - 1], kUnlikely);
    int node = top;
    for (size_t level = 1; level < levels_.size() && node != kAbsent; ++level) {
      node = add_child(request, tree, node, levels_[level].tokens[column], kUnlikely);
    }
  }
}

void LookaheadWindow::learn(const TokenTree& tree, std::span<const TokenId> choices) {
  Level next{.start = position_ + std::ssize(levels_), .tokens = {}};
  int top = 0;
  for (size_t column = 0; column < static_cast<size_t>(columns()); ++column) {
    if (column > 0 && top != kAbsent) top = find_child(tree, top, levels_[0].tokens[column - 1]);
    int node = top;
    ngram_.clear();
    for (size_t level = 1; level < levels_.size() && node != kAbsent; ++level) {
      ngram_.push_back(levels_[level].tokens[column]);
      node = find_child(tree, node, ngram_.back());
    }
    next.tokens.push_back(node == kAbsent ? kUnknown : choices[static_cast<size_t>(node)]);
    if (node == kAbsent || missing_levels() > 0) continue;
    ngram_.push_back(next.tokens.back());
    pool_.add(column == 0 ? tree.token(0) : levels_[0].tokens[column - 1], ngram_);
  }
  if (missing_levels() == 0) levels_.erase(levels_.begin());
  levels_.push_back(std::move(next));
}

TokenId lookahead_filler(std::span<const TokenId> prompt, uint64_t sequence, size_t level, int64_t position) {
  return prompt[random_bits({sequence, level, position, RandomPurpose::kDraft, 0}) % prompt.size()];
}

}  // namespace outrider
