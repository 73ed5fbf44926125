// SPDX-License-Identifier: Apache-2.0
#include "drafters/lookahead/lookahead.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "config/methods.h"
#include "drafters/lookahead/lookahead_window.h"

namespace outrider {
namespace {

class LookaheadDrafter final : public Drafter {
 public:
  explicit LookaheadDrafter(const LookaheadShape& shape) : shape_(shape) {}

  const DrafterTraits& traits() const override { return traits_; }

  void end(uint64_t sequence) override { windows_.erase(sequence); }

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      LookaheadWindow& window = windows_.try_emplace(requests[i].sequence, shape_).first->second;
      window.move_to(requests[i]);
      window.draft(requests[i], trees[i]);
    }
    return {};
  }

  void observe(uint64_t sequence, const TokenTree& tree, const Verdict& verdict) override {
    const auto found = windows_.find(sequence);
    if (found != windows_.end() && !verdict.choices.empty()) found->second.learn(tree, verdict.choices);
  }

 private:
  DrafterTraits traits_{.name = std::string(method_name(Method::kLookahead)), .wants_choices = true};
  LookaheadShape shape_;
  std::unordered_map<uint64_t, LookaheadWindow> windows_;
};

}  // namespace

int lookahead_draft_len(const SpeculativeOptions& options) {
  const int guesses =
      options.lookahead.max_verification_set_size > 0 ? options.lookahead.max_ngram_size - 1 : 0;
  return std::max({1, options.lookahead.max_window_size + options.lookahead.max_ngram_size - 3, guesses});
}

int lookahead_nodes(const SpeculativeOptions& options) {
  const int levels = options.lookahead.max_ngram_size - 1;
  int nodes =
      options.lookahead.max_verification_set_size * levels + levels * options.lookahead.max_window_size - 1;
  // While the first levels fill there are no n-grams yet, but more columns.
  for (int filled = 1; filled < levels; ++filled) {
    nodes = std::max(nodes, filled * (options.lookahead.max_window_size + levels - filled) - 1);
  }
  return std::max(1, nodes);
}

Result<std::shared_ptr<Drafter>> make_lookahead_drafter(const SpeculativeOptions& options,
                                                        const DrafterContext&) {
  return std::shared_ptr<Drafter>(std::make_shared<LookaheadDrafter>(
      LookaheadShape{.columns = options.lookahead.max_window_size,
                     .ngram = options.lookahead.max_ngram_size,
                     .guesses = options.lookahead.max_verification_set_size}));
}

}  // namespace outrider
