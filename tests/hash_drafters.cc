// SPDX-License-Identifier: Apache-2.0
#include "hash_drafters.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "drafter_wrapper.h"
#include "hash_model.h"
#include "sampling/randomness.h"
#include "speculation/likeliest_nodes.h"
#include "speculation/tree_growth.h"

namespace outrider {
namespace {

// Changes the trees of another drafter, so that they are no longer what it computed.
class Meddler final : public DrafterWrapper {
 public:
  Meddler(std::shared_ptr<Drafter> drafter, uint32_t seed)
      : DrafterWrapper(std::move(drafter)), random_(seed) {}

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    OUTRIDER_RETURN_IF_ERROR(DrafterWrapper::draft(requests, trees));
    if (random_() % 9 == 0) throw std::runtime_error("the meddler is angry");
    for (TokenTree& tree : trees) {
      switch (random_() % 6) {
        case 0:
          tree = with_rival(tree);
          break;
        case 1:
          tree = flattened(tree);
          break;
        case 2: {
          std::vector<uint8_t> kept(static_cast<size_t>(tree.size()));
          for (uint8_t& keeps : kept) keeps = random_() % 3 != 0 ? 1 : 0;
          tree.keep(kept);
          break;
        }
        default:
          break;
      }
    }
    return {};
  }

 private:
  TokenTree with_rival(const TokenTree& tree) {
    TokenTree other(tree.token(0));
    other.add(0, static_cast<TokenId>(random_() % kLetters));
    other.merge(tree, 1);
    return other;
  }

  // The same tokens in the same places, as children of the root.
  static TokenTree flattened(const TokenTree& tree) {
    TokenTree other(tree.token(0));
    for (int node = 1; node < tree.size(); ++node) other.add(0, tree.token(node));
    return other;
  }

  std::mt19937 random_;
};

// Grows trees as drafters with probabilities do, by the target's own logits, or, at a given rate, by others.
class HashDraft {
 public:
  HashDraft(const SpeculativeOptions& options, double error_rate, int source)
      : policy_(make_tree_policy(options)),
        growth_options_{.policy = policy_.get(), .children = options.children},
        error_rate_(error_rate),
        source_(source) {}

  void draft(DraftRequest request, TokenTree& tree) {
    request.source = source_;
    TokenHistory history;
    const auto prompt = static_cast<size_t>(request.prompt_length);
    history.add_prompt(request.tokens.first(prompt));
    for (const TokenId token : request.tokens.subspan(prompt)) history.push(token);
    growth_.start(growth_options_, request, tree, history);
    while (!growth_.frontier().empty()) {
      const std::vector<int> frontier(growth_.frontier().begin(), growth_.frontier().end());
      growth_.expand([&](size_t i) { return logits_after(request.tokens, tree, frontier[i]); });
    }
  }

 private:
  std::span<const float> logits_after(std::span<const TokenId> tokens, const TokenTree& tree, int node) {
    std::vector<TokenId> text(tokens.begin(), tokens.end());
    for (int at = node; at != 0; at = tree.parent(at))
      text.insert(text.begin() + static_cast<ptrdiff_t>(tokens.size()), tree.token(at));
    const RandomKey key{7, static_cast<uint64_t>(source_), static_cast<int64_t>(text.size()),
                        RandomPurpose::kDraft, static_cast<uint64_t>(text.back())};
    if (random_uniform(key) < error_rate_) text.push_back(0);
    logits_ = model_.logits_after(text);
    return std::span<const float>(logits_).first(kLetters + 1);
  }

  HashModel model_{kLetters + 1 + kPadding};
  std::unique_ptr<TreePolicy> policy_;
  GrowthOptions growth_options_;
  double error_rate_;
  int source_;
  TreeGrowth growth_;
  std::vector<float> logits_;
};

// One or several of them that share a tree.
class HashDrafter final : public Drafter {
 public:
  HashDrafter(const SpeculativeOptions& options, double error_rate, int members) {
    for (int i = 0; i < members; ++i) members_.emplace_back(options, error_rate, i);
  }

  const DrafterTraits& traits() const override { return traits_; }

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      for (size_t member = 0; member < members_.size(); ++member) {
        TokenTree tree(requests[i].tokens.back());
        members_[member].draft(requests[i], tree);
        trees[i].merge(tree, static_cast<int>(member));
      }
      likeliest_.keep(trees[i], requests[i].max_nodes);
    }
    return {};
  }

 private:
  DrafterTraits traits_{.name = "Hash", .emits_probabilities = true};
  std::vector<HashDraft> members_;
  LikeliestNodes likeliest_;
};

}  // namespace

void OracleDrafter::know(const std::vector<TokenId>& prompt, const std::vector<TokenId>& output) {
  std::vector<TokenId> all = prompt;
  all.insert(all.end(), output.begin(), output.end());
  continuations_.push_back(std::move(all));
}

Status OracleDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  if (hostile_ && random_() % 7 == 0) return input_error("the oracle is silent");
  if (hostile_ && random_() % 7 == 0) throw std::runtime_error("the oracle is angry");
  for (size_t i = 0; i < requests.size(); ++i) grow(requests[i], trees[i]);
  return {};
}

void OracleDrafter::grow(const DraftRequest& request, TokenTree& tree) {
  const std::vector<TokenId>* truth = nullptr;
  for (const auto& one : continuations_) {
    const bool fits = one.size() >= request.tokens.size() &&
                      std::equal(request.tokens.begin(), request.tokens.end(), one.begin());
    if (fits) truth = &one;
  }
  const int extra = hostile_ ? 3 : 0;
  const int nodes = static_cast<int>(random_() % static_cast<unsigned>(request.max_nodes + 1 + extra));
  if (hostile_ && random_() % 9 == 0) tree.reset(static_cast<TokenId>(random_() % kLetters));
  int last = 0;
  for (int i = 0; i < nodes; ++i) {
    const int parent = !branches_ ? last : static_cast<int>(random_() % static_cast<unsigned>(tree.size()));
    if (tree.depth(parent) >= request.max_depth + extra) continue;
    const size_t place = request.tokens.size() + static_cast<size_t>(tree.depth(parent));
    const bool errs = std::uniform_real_distribution<>()(random_) < error_rate_;
    TokenId token = static_cast<TokenId>(random_() % (kLetters + 1 + (hostile_ ? kPadding + 2 : 0)));
    if (!errs && truth != nullptr && place < truth->size()) token = (*truth)[place];
    last = tree.add(parent, token);
  }
}

std::shared_ptr<Drafter> meddled(std::shared_ptr<Drafter> drafter, uint32_t seed) {
  return std::make_shared<Meddler>(std::move(drafter), seed);
}

std::shared_ptr<Drafter> hash_drafter(const SpeculativeOptions& options, double error_rate, int members) {
  return std::make_shared<HashDrafter>(options, error_rate, members);
}

}  // namespace outrider
