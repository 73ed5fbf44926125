// SPDX-License-Identifier: Apache-2.0
#include "drafters/ngram/ngram.h"

#include <string>
#include <unordered_map>

#include "config/methods.h"
#include "drafters/ngram/ngram_pool.h"

namespace outrider {
namespace {

class NgramDrafter final : public Drafter {
 public:
  NgramDrafter(const NgramPoolOptions& options, bool is_public, bool is_tree)
      : options_(options), is_public_(is_public), is_tree_(is_tree), public_pool_(options) {}

  const DrafterTraits& traits() const override { return traits_; }

  void begin(uint64_t sequence, std::span<const TokenId>, uint64_t) override {
    sequences_.try_emplace(sequence, options_);
  }
  void end(uint64_t sequence) override { sequences_.erase(sequence); }

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    for (size_t i = 0; i < requests.size(); ++i) draft_one(requests[i], trees[i]);
    return {};
  }

 private:
  struct Sequence {
    explicit Sequence(const NgramPoolOptions& options) : pool(options) {}
    NgramPool pool;
    size_t known = 0;  // tokens learned from
  };

  void draft_one(const DraftRequest& request, TokenTree& tree) {
    Sequence& sequence = sequences_.try_emplace(request.sequence, options_).first->second;
    NgramPool& pool = is_public_ ? public_pool_ : sequence.pool;
    pool.learn(request.tokens, sequence.known);
    sequence.known = request.tokens.size();
    if (is_tree_) {
      pool.find_all(request.tokens, [&](std::span<const TokenId> continuation) {
        add_path(request, continuation, tree);
        return tree.drafted() < request.max_nodes;
      });
    } else {
      add_path(request, pool.find(request.tokens), tree);
    }
  }

  static void add_path(const DraftRequest& request, std::span<const TokenId> tokens, TokenTree& tree) {
    int node = 0;
    for (const TokenId token : tokens) {
      if (tree.depth(node) >= request.max_draft_len || tree.drafted() >= request.max_nodes) break;
      node = tree.add(node, token);
    }
  }

  DrafterTraits traits_{.name = std::string(method_name(Method::kNGram))};
  NgramPoolOptions options_;
  bool is_public_;
  bool is_tree_;  // several continuations share a tree, else the best one is drafted
  NgramPool public_pool_;
  std::unordered_map<uint64_t, Sequence> sequences_;
};

}  // namespace

Result<std::shared_ptr<Drafter>> make_ngram_drafter(const SpeculativeOptions& options,
                                                    const DrafterContext&) {
  const NgramPoolOptions pool{.max_pattern = options.ngram.max_matching_ngram_size,
                              .max_draft_len = options.max_draft_len,
                              .keep_all = options.ngram.is_keep_all,
                              .use_oldest = options.ngram.is_use_oldest,
                              .max_patterns = options.ngram.max_pool_patterns};
  return std::shared_ptr<Drafter>(std::make_shared<NgramDrafter>(pool, options.ngram.is_public_pool,
                                                                 options.tree.kind != TreeKind::kChain));
}

}  // namespace outrider
