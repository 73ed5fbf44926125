// SPDX-License-Identifier: Apache-2.0
// A pass over the first layers, resumed by a pass over the others, gives the bits of a whole pass. The logits
// show it, and the logits of later rows show it of the keys and values of all layers. Caches are poisoned.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "models/model_test_data.h"

namespace outrider {
namespace {

using Rows = std::vector<std::vector<float>>;

constexpr int64_t kLayers = 5;
constexpr int64_t kEntries = 512;

struct Text {
  std::vector<TokenId> tokens;
  Rows logits;  // from whole passes, one token at a time
};

Text decode(TestModel& model, int count, uint32_t seed) {
  Text text{random_tokens(count, model->config().vocab_size, seed), {}};
  const auto cache = model.make_cache(16, kEntries);
  KvSequence sequence = cache->open({});
  for (size_t i = 0; i < text.tokens.size(); ++i) {
    text.logits.push_back(run_chunk(*model, *cache, sequence, std::span(text.tokens).subspan(i, 1)).front());
  }
  return text;
}

// A random tree, level after level, that has the next tokens of a text as one of its paths.
struct Tree {
  std::vector<TokenId> tokens;
  std::vector<int> parents;
  std::vector<int> path;
};

Tree grow_tree(std::span<const TokenId> continuation, int64_t vocab_size, std::mt19937& random) {
  Tree tree{{continuation[0]}, {-1}, {0}};
  int level_begin = 0;
  for (size_t depth = 1; depth < continuation.size(); ++depth) {
    const auto level_end = static_cast<int>(tree.tokens.size());
    const uint32_t nodes = 1 + random() % 3;
    const uint32_t right = random() % nodes;
    const int right_parent = tree.path.back();
    for (uint32_t i = 0; i < nodes; ++i) {
      const auto any = static_cast<uint32_t>(level_end - level_begin);
      if (i == right) tree.path.push_back(static_cast<int>(tree.tokens.size()));
      tree.parents.push_back(i == right ? right_parent : level_begin + static_cast<int>(random() % any));
      tree.tokens.push_back(i == right ? continuation[depth]
                                       : static_cast<TokenId>(random() % static_cast<uint32_t>(vocab_size)));
    }
    level_begin = level_end;
  }
  return tree;
}

// One sequence of a batch. A text is fed to it in chunks and in trees; earlier passes have taken any number
// of the first nodes of a tree through the first layers.
class Feed {
 public:
  Feed(TestModel& model, KvCache& cache, const Text& text, uint32_t seed)
      : model_(model), cache_(cache), text_(text), random_(seed), sequence_(cache.open({})) {}

  bool done() const { return sequence_.length() == static_cast<int32_t>(text_.tokens.size()); }

  // Stages the next chunk or tree, and runs the first `layers` over some of the tree's nodes, level by level.
  void prepare(int64_t layers) {
    const auto left = std::span(text_.tokens).subspan(static_cast<size_t>(sequence_.length()));
    const size_t depth = std::min<size_t>(left.size(), 1 + random_() % 5);
    tree_ = grow_tree(left.first(depth), model_->config().vocab_size, random_);
    is_chunk_ = random_() % 4 == 0;
    if (is_chunk_) {
      tree_.tokens.assign(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(depth));
      tree_.path.resize(depth);
      std::iota(tree_.path.begin(), tree_.path.end(), 0);
    }
    transaction_.emplace(cache_.stage(sequence_, static_cast<int>(tree_.tokens.size())).value());
    states_.clear();
    computed_ = 0;
    const auto count = is_chunk_ ? 0 : static_cast<int>(random_() % (tree_.tokens.size() + 1));
    while (computed_ < count) {
      const int next = std::min(count, computed_ + 1 + static_cast<int>(random_() % 4));
      ForwardBatch batch;
      const auto nodes = static_cast<size_t>(next);
      append_tree(batch, sequence_, *transaction_,
                  {std::span(tree_.tokens).first(nodes), std::span(tree_.parents).first(nodes), computed_},
                  LogitsWanted::kAll);
      const SubsetOutput output =
          model_->forward_subset(batch, cache_, {.count = layers, .skip_attention = {}, .skip_mlp = {}});
      states_.insert(states_.end(), output.states.begin(), output.states.end());
      computed_ = next;
    }
  }

  void append(ForwardBatch& batch) {
    if (is_chunk_) {
      first_ = append_chain(batch, sequence_, *transaction_, tree_.tokens, LogitsWanted::kAll);
      return;
    }
    for (int i = 0; i < computed_; ++i) batch.resumed_rows.push_back(batch.rows() + i);
    batch.resumed_states.insert(batch.resumed_states.end(), states_.begin(), states_.end());
    first_ = append_tree(batch, sequence_, *transaction_, {tree_.tokens, tree_.parents}, LogitsWanted::kAll);
  }

  void check_and_commit(std::span<const float> logits) {
    tree_.path.resize(1 + random_() % tree_.path.size());
    std::vector<TokenId> accepted;
    for (const int node : tree_.path) {
      const auto place = static_cast<size_t>(sequence_.length()) + accepted.size();
      ASSERT_EQ(logits_row(logits, first_ + node, *model_), text_.logits[place]) << "token " << place;
      accepted.push_back(tree_.tokens[static_cast<size_t>(node)]);
    }
    transaction_->commit(tree_.path, accepted);
    transaction_.reset();
  }

 private:
  TestModel& model_;
  KvCache& cache_;
  const Text& text_;
  std::mt19937 random_;
  KvSequence sequence_;
  Tree tree_;
  bool is_chunk_ = false;
  std::optional<KvTransaction> transaction_;
  std::vector<float> states_;
  int computed_ = 0;  // nodes that went through the first layers
  int first_ = 0;
};

class LayerSubsetTest : public testing::TestWithParam<ModelCase> {
 protected:
  TestModelOptions options(int workers) const { return options_for(GetParam(), workers, kLayers); }
};

TEST_P(LayerSubsetTest, ResumedRowsHaveTheBitsOfAWholePass) {
  TestModel model({options(2)});
  ASSERT_TRUE(model.ok());
  const std::vector<Text> texts = {decode(model, 13, 1), decode(model, 22, 2), decode(model, 31, 3)};
  for (int64_t layers = 1; layers < kLayers; ++layers) {
    const auto cache = model.make_cache(layers % 2 == 0 ? 1 : 16, kEntries);
    std::vector<std::unique_ptr<Feed>> feeds;
    for (size_t i = 0; i < texts.size(); ++i) {
      feeds.push_back(
          std::make_unique<Feed>(model, *cache, texts[i], static_cast<uint32_t>(layers) * 10 + i));
    }
    while (!feeds.empty()) {
      ForwardBatch batch;
      batch.resume_layer = layers;
      for (const auto& feed : feeds) feed->prepare(layers);
      for (const auto& feed : feeds) feed->append(batch);
      const auto logits = model->forward(batch, *cache);
      for (const auto& feed : feeds) {
        feed->check_and_commit(logits);
        if (HasFatalFailure()) FAIL() << "exit layer " << layers;
      }
      std::erase_if(feeds, [](const auto& feed) { return feed->done(); });
    }
  }
}

// A pass that skips nothing equals a whole pass, and one that skips everything gives the embedding. The
// verification after it overwrites all that it wrote.
TEST_P(LayerSubsetTest, SkippedPartsLeaveNoTrace) {
  TestModel model({options(1)});
  ASSERT_TRUE(model.ok());
  const Text text = decode(model, 12, 4);
  const auto cache = model.make_cache(16, kEntries);
  KvSequence sequence = cache->open({});
  const std::vector<uint8_t> none(kLayers, 0);
  const std::vector<uint8_t> all(kLayers, 1);
  const std::vector<uint8_t> some = {0, 1, 0, 0, 1};
  for (size_t i = 0; i < text.tokens.size(); ++i) {
    const std::span<const TokenId> token = std::span(text.tokens).subspan(i, 1);
    auto transaction = cache->stage(sequence, 1).value();
    ForwardBatch batch;
    append_chain(batch, sequence, transaction, token, LogitsWanted::kAll);
    const auto logits = [&](const LayerSubset& layers) {
      return logits_row(model->forward_subset(batch, *cache, layers).logits, 0, *model);
    };
    // This runs before the row has any keys and values: skipped attention must not read them.
    const auto bare = logits({.count = kLayers, .skip_attention = all, .skip_mlp = all});
    EXPECT_NE(logits({.count = kLayers, .skip_attention = some, .skip_mlp = none}), text.logits[i]);
    EXPECT_NE(logits({.count = kLayers, .skip_attention = none, .skip_mlp = some}), text.logits[i]);
    EXPECT_EQ(bare, logits({.count = 1, .skip_attention = all, .skip_mlp = all}));
    ASSERT_EQ(logits({.count = kLayers, .skip_attention = none, .skip_mlp = none}), text.logits[i]);
    logits({.count = kLayers, .skip_attention = some, .skip_mlp = some});
    ASSERT_EQ(logits_row(model->forward(batch, *cache), 0, *model), text.logits[i]) << "token " << i;
    transaction.commit(std::vector<int>{0}, token);
  }
}

std::vector<ModelCase> subset_cases() {
  std::vector<ModelCase> cases;
  constexpr DType kKvTypes[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kE4M3, DType::kQ8_0};
  size_t turn = 0;
  for (const auto kernels : available_kernels()) {
    for (const auto weights : {DType::kF32, DType::kBF16, DType::kQ8_0, DType::kI8, DType::kQ4_0}) {
      const char* model = turn % 2 == 0 ? "mistral" : "qwen3";
      cases.push_back({model, std::string(kernels), weights, kKvTypes[turn++ % 4]});
    }
  }
  const std::string fastest(available_kernels().back());
  for (const std::string& model : all_models()) {
    if (model == "gemma4")
      continue;  // its embedding has a part for each layer, so that layers cannot be repeated
    cases.push_back({model, fastest, std::nullopt});
    if (model != "mistral" && model != "qwen3") cases.push_back({model, fastest, DType::kBF16, DType::kBF16});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, LayerSubsetTest, testing::ValuesIn(subset_cases()), case_name);

}  // namespace
}  // namespace outrider
