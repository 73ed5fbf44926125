// SPDX-License-Identifier: Apache-2.0
#include "tests/lossless/hash_drafters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "drafters/draft_target/draft_target.h"
#include "speculation/tree/top_nodes.h"
#include "speculation/tree/tree_growth.h"
#include "tests/support/drafter_wrapper.h"
#include "tests/support/tree_recorder.h"

namespace outrider {
namespace {

// Changes the trees of another drafter after it has computed them.
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

  // Makes every node a child of the root, with its token and number.
  static TokenTree flattened(const TokenTree& tree) {
    TokenTree other(tree.token(0));
    for (int node = 1; node < tree.size(); ++node) other.add(0, tree.token(node));
    return other;
  }

  std::mt19937 random_;
};

// Grows trees as DraftTarget does, from the logits after whole texts.
class HashDraft {
 public:
  HashDraft(const HashModel* model, const SpeculativeOptions& options)
      : model_(model),
        policy_(make_tree_policy(options)),
        growth_options_(growth_options(options, policy_.get())) {}

  void draft(const DraftRequest& request, TokenTree& tree) {
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
    logits_ = model_->logits_after(text);
    return std::span<const float>(logits_).first(kLetters + 1);
  }

  const HashModel* model_;
  std::unique_ptr<TreePolicy> policy_;
  GrowthOptions growth_options_;
  TreeGrowth growth_;
  std::vector<float> logits_;
};

// Makes one drafter, or several that share a tree.
class HashDrafter final : public Drafter {
 public:
  HashDrafter(const SpeculativeOptions& options, double error_rate, int members, bool has_state) {
    for (int i = 0; i < members; ++i) {
      models_.push_back(std::make_unique<HashModel>(error_rate, static_cast<uint64_t>(i), has_state));
      members_.emplace_back(models_.back().get(), options);
    }
  }

  const DrafterTraits& traits() const override { return traits_; }

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      DraftRequest request = requests[i];
      for (HashDraft& member : members_) {
        request.source = static_cast<int>(&member - members_.data());
        TokenTree tree(request.tokens.back());
        member.draft(request, tree);
        trees[i].merge(tree, request.source);
      }
      likeliest_.keep(trees[i], request.max_nodes);
    }
    return {};
  }

 private:
  DrafterTraits traits_{.name = "Hash", .emits_probabilities = true};
  std::vector<std::unique_ptr<HashModel>> models_;
  std::vector<HashDraft> members_;
  TopNodes likeliest_;
};

// Compares the trees of DraftTarget with the trees that its model grows over whole texts. If time has a price
// (DraftRequest::rate), the depth of a tree depends on measured times, so every other call drafts without a
// price, and only these trees are compared.
class ComparedDraft final : public DrafterWrapper {
 public:
  ComparedDraft(std::shared_ptr<Drafter> drafter, HashDraft reference, DraftComparison& comparison)
      : DrafterWrapper(std::move(drafter)), reference_(std::move(reference)), comparison_(comparison) {}

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    asked_.assign(requests.begin(), requests.end());
    is_free_ = !is_free_;
    for (DraftRequest& request : asked_) request.rate = is_free_ ? 0.0 : request.rate;
    OUTRIDER_RETURN_IF_ERROR(DrafterWrapper::draft(asked_, trees));
    for (size_t i = 0; i < asked_.size(); ++i) {
      if (asked_[i].rate > 0.0) continue;
      TokenTree expected(asked_[i].tokens.back());
      reference_.draft(asked_[i], expected);
      ++comparison_.trees;
      comparison_.differing += drafted_in(trees[i]) == drafted_in(expected) ? 0 : 1;
    }
    return {};
  }

 private:
  HashDraft reference_;
  DraftComparison& comparison_;
  std::vector<DraftRequest> asked_;
  bool is_free_ = false;
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
    if (tree.depth(parent) >= request.max_draft_len + extra) continue;
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

std::shared_ptr<Drafter> hash_drafter(const SpeculativeOptions& options, double error_rate, int members,
                                      bool has_state) {
  return std::make_shared<HashDrafter>(options, error_rate, members, has_state);
}

std::span<const float> FailingModel::forward(const ForwardBatch& batch, KvCache& cache) {
  if (++passes_ % 7 == 0) throw std::bad_alloc();
  return HashModel::forward(batch, cache);
}

std::shared_ptr<Drafter> hash_draft_target(std::unique_ptr<HashModel> model,
                                           const SpeculativeOptions& options, const DrafterContext& context,
                                           DraftComparison& comparison) {
  HashDraft reference(model.get(), options);
  auto made = make_draft_target_drafter(std::move(model), options, context);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::make_shared<ComparedDraft>(std::move(*made), std::move(reference), comparison);
}

}  // namespace outrider
