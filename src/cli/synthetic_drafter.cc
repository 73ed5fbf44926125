// SPDX-License-Identifier: Apache-2.0
#include "cli/synthetic_drafter.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/counter_rng.h"
#include "speculation/tree/acceptance_estimates.h"

namespace outrider {

SyntheticDrafter::SyntheticDrafter(std::shared_ptr<Drafter> inner, double rate, int64_t vocab_size)
    : inner_(std::move(inner)),
      traits_{.name = inner_->traits().name, .emits_probabilities = false},
      rate_(rate),
      vocab_size_(vocab_size) {}

Status SyntheticDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  std::vector<Growing> growing;
  for (size_t i = 0; i < requests.size(); ++i) {
    growing.push_back({.request = requests[i],
                       .tokens = {requests[i].tokens.begin(), requests[i].tokens.end()},
                       .tree = &trees[i]});
  }
  while (!growing.empty()) {
    std::vector<TokenTree> proposals;
    OUTRIDER_RETURN_IF_ERROR(draft_level(growing, proposals));
    std::vector<Growing> still;
    for (size_t i = 0; i < growing.size(); ++i) {
      if (proposals[i].drafted() == 0) continue;
      Growing& one = growing[i];
      add_level(one, proposals[i]);
      if (one.tree->depth(one.end) < one.depth() && wants_level(one)) still.push_back(std::move(one));
    }
    growing = std::move(still);
  }
  return {};
}

Status SyntheticDrafter::draft_level(std::span<const Growing> growing, std::vector<TokenTree>& proposals) {
  std::vector<DraftRequest> level;
  for (const Growing& one : growing) {
    DraftRequest request = one.request;
    request.tokens = one.tokens;
    request.max_draft_len = 1;
    request.max_nodes = one.width();
    level.push_back(request);
    proposals.emplace_back(one.tokens.back());
  }
  const double start = now_ms();
  OUTRIDER_RETURN_IF_ERROR(inner_->draft(level, proposals));
  if (growing.front().end == 0) return {};
  level_time_.learn(1.0, (now_ms() - start) / static_cast<double>(growing.size()));
  return {};
}

bool SyntheticDrafter::wants_level(const Growing& one) const {
  const DraftRequest& request = one.request;
  if (request.rate == 0 || request.estimates == nullptr) return true;
  const int depth = one.tree->depth(one.end);
  return one.reached * request.estimates->continuation(depth) >
         request.rate * (level_time_.ms_of(1.0) + request.row_ms);
}

// The first proposal is replaced and goes on; others stay beside it unless they would be right.
void SyntheticDrafter::add_level(Growing& one, const TokenTree& proposals) const {
  const std::optional<TokenId> right = right_after(one.tokens);
  const int parent = one.end;
  const TokenId first = right ? replaced(one, *right, proposals.token(1)) : proposals.token(1);
  // A probability of 1 would say nothing.
  const double of_first = std::clamp(rate_, 0.01, 0.99);
  one.end = one.tree->add(parent, first, of_first);
  if (one.request.estimates != nullptr) {
    one.reached *= one.request.estimates->estimate(one.tree->depth(one.end), one.tree->probability(one.end));
  }
  for (int node = 2; node < proposals.size(); ++node) {
    const TokenId token = proposals.token(node);
    if (token != first && token != right)
      one.tree->add(parent, token, (1.0 - of_first) / proposals.drafted());
  }
  one.tokens.push_back(first);
}

std::optional<TokenId> SyntheticDrafter::right_after(std::span<const TokenId> tokens) const {
  if (tokens.size() >= expected_.size()) return std::nullopt;
  if (!std::equal(tokens.begin(), tokens.end(), expected_.begin())) return std::nullopt;
  return expected_[tokens.size()];
}

TokenId SyntheticDrafter::replaced(const Growing& one, TokenId right, TokenId proposed) const {
  const RandomKey key{.seed = one.request.sampling->seed,
                      .sample_index = one.request.sequence,
                      .position = std::ssize(one.tokens),
                      .purpose = RandomPurpose::kDraft};
  if (random_uniform(key) < rate_) return right;
  return proposed != right ? proposed : static_cast<TokenId>((right + 1) % vocab_size_);
}

}  // namespace outrider
