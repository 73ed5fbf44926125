// SPDX-License-Identifier: Apache-2.0
#include "cli/synthetic_drafter.h"

#include <algorithm>
#include <utility>

#include "base/counter_rng.h"

namespace outrider {
namespace {

// A sequence and its chain while it is drafted.
struct Growing {
  DraftRequest request;
  std::vector<TokenId> tokens;  // committed tokens, then the chain
  TokenTree* tree = nullptr;
};

}  // namespace

SyntheticDrafter::SyntheticDrafter(std::shared_ptr<Drafter> inner, double rate, int64_t vocab_size)
    : inner_(std::move(inner)),
      traits_{.name = inner_->traits().name, .emits_probabilities = false},
      rate_(rate),
      vocab_size_(vocab_size) {}

Status SyntheticDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  std::vector<Growing> growing;
  for (size_t i = 0; i < requests.size(); ++i) {
    growing.push_back({requests[i], {requests[i].tokens.begin(), requests[i].tokens.end()}, &trees[i]});
  }
  while (!growing.empty()) {
    std::vector<DraftRequest> level;
    std::vector<TokenTree> proposals;
    for (const Growing& one : growing) {
      DraftRequest request = one.request;
      request.tokens = one.tokens;
      request.max_depth = request.max_nodes = 1;
      level.push_back(request);
      proposals.emplace_back(one.tokens.back());
    }
    OUTRIDER_RETURN_IF_ERROR(inner_->draft(level, proposals));
    std::vector<Growing> still;
    for (size_t i = 0; i < growing.size(); ++i) {
      if (proposals[i].drafted() == 0) continue;
      Growing& one = growing[i];
      one.tokens.push_back(replaced(one.request, one.tokens, proposals[i].token(1)));
      const int node = one.tree->add(one.tree->size() - 1, one.tokens.back());
      const int limit = std::min(one.request.max_depth, one.request.max_nodes);
      if (one.tree->depth(node) < limit) still.push_back(std::move(one));
    }
    growing = std::move(still);
  }
  return {};
}

TokenId SyntheticDrafter::replaced(const DraftRequest& request, std::span<const TokenId> tokens,
                                   TokenId proposed) const {
  const size_t position = tokens.size();
  if (position >= expected_.size() || !std::equal(tokens.begin(), tokens.end(), expected_.begin())) {
    return proposed;
  }
  const TokenId right = expected_[position];
  const RandomKey key{.seed = request.sampling->seed,
                      .sample_index = request.sequence,
                      .position = static_cast<int64_t>(position),
                      .purpose = RandomPurpose::kDraft};
  if (random_uniform(key) < rate_) return right;
  return proposed != right ? proposed : static_cast<TokenId>((right + 1) % vocab_size_);
}

}  // namespace outrider
