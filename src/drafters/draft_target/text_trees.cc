// SPDX-License-Identifier: Apache-2.0
#include "drafters/draft_target/text_trees.h"

#include <algorithm>

namespace outrider {
namespace {

bool has_child(const TokenTree& tree, int node, TokenId token) {
  for (int child = node + 1; child < tree.size(); ++child)
    if (tree.parent(child) == node && tree.token(child) == token) return true;
  return false;
}

}  // namespace

void TextTrees::start(size_t requests) {
  requests_.assign(requests, {});
  trees_.resize(std::max(trees_.size(), requests));
  for (TokenTree& tree : trees_) tree.reset(0);
}

const DraftRequest& TextTrees::ask(size_t index, const DraftRequest& request, std::span<const TokenId> own) {
  DraftRequest& asked = requests_[index];
  asked = request;
  asked.tokens = own;
  asked.prompt_length = 0;
  asked.sampling = &greedy_;
  asked.acceptance = AcceptanceRule::kCoupled;
  asked.constraint = nullptr;  // it speaks of tokens of the target
  asked.wants_probabilities = true;
  trees_[index].reset(own.back());
  return asked;
}

void TextTrees::hand_over(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  for (size_t i = 0; i < requests.size(); ++i)
    if (trees_[i].drafted() > 0) hand_over_one(trees_[i], requests[i], trees[i]);
}

void TextTrees::hand_over_one(const TokenTree& own, const DraftRequest& request, TokenTree& tree) {
  const std::string words = match_.last_words(request.tokens);
  std::vector<uint8_t> is_inner(static_cast<size_t>(own.size()), 0);
  for (int node = 1; node < own.size(); ++node) is_inner[static_cast<size_t>(own.parent(node))] = 1;
  for (const int node : order_.order(own)) {
    if (is_inner[static_cast<size_t>(node)] != 0) continue;
    spell(own, node);
    match_.split(words, text_, pieces_);
    add_path(request, tree);
  }
}

// The text of the path ends before a control token.
void TextTrees::spell(const TokenTree& own, int leaf) {
  path_.clear();
  for (int node = leaf; node > 0; node = own.parent(node)) path_.push_back(node);
  text_.clear();
  reached_.clear();
  double probability = 1.0;
  for (auto node = path_.rbegin(); node != path_.rend(); ++node) {
    const std::string_view bytes = bridge_.draft_bytes(own.token(*node));
    if (bytes.empty()) break;
    text_ += bytes;
    probability *= own.probability(*node);
    reached_.push_back({text_.size(), probability});
  }
}

// A token is as probable as the own tokens that its text takes, given its parent's.
void TextTrees::add_path(const DraftRequest& request, TokenTree& tree) const {
  constexpr double kLeast = 1e-9;
  int node = 0;
  double before = 1.0;
  auto reached = reached_.begin();
  for (const StringMatch::Piece& piece : pieces_) {
    while (reached->bytes < piece.end) ++reached;
    const bool is_full = tree.drafted() >= request.max_nodes && !has_child(tree, node, piece.token);
    if (is_full || tree.depth(node) >= request.max_draft_len) return;
    node = tree.add(node, piece.token, std::clamp(reached->probability / before, kLeast, 1.0));
    before = std::max(reached->probability, kLeast);
  }
}

}  // namespace outrider
