// SPDX-License-Identifier: Apache-2.0
// The bits of a row's logits depend only on the tokens before it: not on chunks, trees, other sequences of
// the batch, pages or workers. Comparisons are exact, and caches are poisoned so that reading a wrong entry
// gives NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "models/model_test_data.h"

namespace outrider::row_invariance_test {
namespace {

using Rows = std::vector<std::vector<float>>;

constexpr int kTokens = 44;
constexpr int64_t kEntries = 256;

// Logits of plain decoding, one token at a time.
Rows decode(TestModel& model, std::span<const TokenId> tokens) {
  const auto cache = model.make_cache(16, kEntries);
  KvSequence sequence = cache->open({});
  Rows rows;
  for (size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back(run_chunk(*model, *cache, sequence, tokens.subspan(i, 1)).front());
  }
  return rows;
}

Rows decode_in_chunks(TestModel& model, std::span<const TokenId> tokens, std::vector<size_t> chunks,
                      int page_size) {
  const auto cache = model.make_cache(page_size, kEntries);
  KvSequence sequence = cache->open({});
  Rows rows;
  for (size_t chunk = 0; rows.size() < tokens.size(); ++chunk) {
    const size_t count = std::min(chunks[chunk % chunks.size()], tokens.size() - rows.size());
    const auto part = run_chunk(*model, *cache, sequence, tokens.subspan(rows.size(), count));
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows;
}

struct Tree {
  std::vector<TokenId> tokens;
  std::vector<int> parents;
  std::vector<int> path;  // nodes of the true continuation, in order
};

// A tree of the true continuation of up to six tokens with wrong nodes before, between and after its own.
Tree grow_tree(std::span<const TokenId> continuation, TokenId vocab_size, std::mt19937& random) {
  Tree tree{{continuation[0]}, {-1}, {0}};
  const size_t depth = std::min<size_t>(continuation.size(), 1 + random() % 6);
  while (tree.path.size() < depth || random() % 3 != 0) {
    const bool wrong = random() % 2 == 0 || tree.path.size() == depth;
    const auto size = static_cast<int>(tree.tokens.size());
    if (wrong) {
      const auto parent = static_cast<int>(random() % tree.tokens.size());
      tree.tokens.push_back(static_cast<TokenId>(random() % static_cast<uint32_t>(vocab_size)));
      tree.parents.push_back(parent);
    } else {
      tree.tokens.push_back(continuation[tree.path.size()]);
      tree.parents.push_back(tree.path.back());
      tree.path.push_back(size);
    }
  }
  return tree;
}

// Prefills a third of the tokens, then verifies trees and commits a part of each true path.
Rows decode_by_trees(TestModel& model, std::span<const TokenId> tokens, int page_size, uint32_t seed) {
  std::mt19937 random(seed);
  const auto cache = model.make_cache(page_size, kEntries);
  KvSequence sequence = cache->open({});
  Rows rows = run_chunk(*model, *cache, sequence, tokens.first(tokens.size() / 3));
  while (rows.size() < tokens.size()) {
    const auto vocab_size = static_cast<TokenId>(model->config().vocab_size);
    Tree tree = grow_tree(tokens.subspan(rows.size()), vocab_size, random);
    auto transaction = cache->stage(sequence, static_cast<int>(tree.tokens.size()));
    EXPECT_TRUE(transaction.ok());
    ForwardBatch batch;
    append_tree(batch, sequence, *transaction, {tree.tokens, tree.parents}, LogitsWanted::kAll);
    const auto logits = model->forward(batch, *cache);
    tree.path.resize(1 + random() % tree.path.size());
    std::vector<TokenId> accepted;
    for (const int node : tree.path) {
      rows.push_back(logits_row(logits, node, *model));
      accepted.push_back(tree.tokens[static_cast<size_t>(node)]);
    }
    transaction->commit(tree.path, accepted);
  }
  return rows;
}

// Runs three sequences in every batch, each with its own chunk size, and returns the rows of all.
std::vector<Rows> decode_together(TestModel& model, const std::vector<std::vector<TokenId>>& texts,
                                  int page_size) {
  const auto cache = model.make_cache(page_size, kEntries);
  std::vector<KvSequence> sequences(texts.size());
  for (auto& sequence : sequences) sequence = cache->open({});
  std::vector<Rows> rows(texts.size());
  const auto unfinished = [&](size_t i) { return rows[i].size() < texts[i].size(); };
  while (unfinished(0) || unfinished(1) || unfinished(2)) {
    ForwardBatch batch;
    std::vector<std::pair<size_t, KvTransaction>> staged;
    std::vector<int> first;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (!unfinished(i)) continue;
      const size_t count = std::min(1 + 4 * i, texts[i].size() - rows[i].size());
      auto transaction = cache->stage(sequences[i], static_cast<int>(count));
      EXPECT_TRUE(transaction.ok());
      first.push_back(append_chain(batch, sequences[i], *transaction,
                                   std::span(texts[i]).subspan(rows[i].size(), count), LogitsWanted::kAll));
      staged.emplace_back(i, std::move(transaction).value());
    }
    const auto logits = model->forward(batch, *cache);
    for (size_t s = 0; s < staged.size(); ++s) {
      auto& [i, transaction] = staged[s];
      std::vector<int> path;
      std::vector<TokenId> accepted;
      for (int j = 0; j < transaction.count(); ++j) {
        path.push_back(j);
        accepted.push_back(texts[i][rows[i].size()]);
        rows[i].push_back(logits_row(logits, first[s] + j, *model));
      }
      transaction.commit(path, accepted);
    }
  }
  return rows;
}

void expect_same(const Rows& expected, const Rows& actual, const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(expected[i], actual[i]) << what << ", row " << i;
}

std::vector<ModelCase> invariance_cases() {
  std::vector<ModelCase> cases;
  for (const auto kernels : available_kernels()) {
    constexpr DType kKvTypes[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kE4M3, DType::kQ8_0};
    size_t turn = 0;
    for (const auto weights : {DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ4_0}) {
      cases.push_back({"mistral", std::string(kernels), weights, kKvTypes[turn % 4]});
      cases.push_back({"qwen3", std::string(kernels), weights, kKvTypes[(turn + 1) % 4]});
      ++turn;
    }
    cases.push_back({"gemma2", std::string(kernels), DType::kBF16, DType::kBF16});
    cases.push_back({"gemma2", std::string(kernels), DType::kQ8_0, DType::kQ8_0});
  }
  const std::string fastest(available_kernels().back());
  for (const std::string& model : all_models()) {
    cases.push_back({model, fastest, std::nullopt});
    if (model != "mistral" && model != "gemma2")
      cases.push_back({model, fastest, DType::kBF16, DType::kBF16});
  }
  return cases;
}

class RowInvarianceTest : public testing::TestWithParam<ModelCase> {
 protected:
  TestModelOptions options(int workers) const { return options_for(GetParam(), workers); }
};

TEST_P(RowInvarianceTest, ChunksTreesPagesAndWorkersLeaveTheBitsAlone) {
  TestModel one({options(1)});
  TestModel two({options(2)});
  TestModel three({options(3)});
  ASSERT_TRUE(one.ok() && two.ok() && three.ok());
  const auto tokens = random_tokens(kTokens, one->config().vocab_size, 1);
  const Rows expected = decode(one, tokens);
  expect_same(expected, decode_in_chunks(one, tokens, {kTokens}, 1), "whole, page 1");
  expect_same(expected, decode_in_chunks(two, tokens, {7}, 64), "chunks of 7, page 64");
  expect_same(expected, decode_in_chunks(three, tokens, {1, 2, 17, 3}, 16), "mixed chunks, page 16");
  expect_same(expected, decode_by_trees(one, tokens, 1, 1), "trees, page 1");
  expect_same(expected, decode_by_trees(two, tokens, 16, 2), "trees, page 16");
  expect_same(expected, decode_by_trees(three, tokens, 64, 3), "trees, page 64");
}

// Every block type of files, on a model with rows of whole blocks.
TEST(RowInvarianceOfTypes, ChunksAndTreesLeaveTheBitsAlone) {
  constexpr int kFewTokens = 12;
  const std::string fastest(available_kernels().back());
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    if (block_elements(dtype) == 1) continue;
    const std::string path = shape_path("llama-68m", dtype, 512);
    TestModel model({.name = path, .kernels = fastest, .workers = 2});
    ASSERT_TRUE(model.ok());
    const auto tokens = random_tokens(kFewTokens, model->config().vocab_size, 1);
    const Rows expected = decode(model, tokens);
    for (const float logit : expected.back()) ASSERT_TRUE(std::isfinite(logit)) << path;
    expect_same(expected, decode_in_chunks(model, tokens, {kFewTokens}, 16), path + ", whole");
    expect_same(expected, decode_by_trees(model, tokens, 16, 2), path + ", trees");
  }
}

TEST_P(RowInvarianceTest, BatchMatesLeaveTheBitsAlone) {
  TestModel model({options(2)});
  ASSERT_TRUE(model.ok());
  std::vector<std::vector<TokenId>> texts;
  for (const int count : {9, 23, 44}) {
    texts.push_back(random_tokens(count, model->config().vocab_size, static_cast<uint32_t>(count)));
  }
  const auto together = decode_together(model, texts, 16);
  for (size_t i = 0; i < texts.size(); ++i) {
    expect_same(decode(model, texts[i]), together[i], "sequence " + std::to_string(i));
  }
}

// The last layer computes only the rows with wanted logits, but must store the entries of all rows.
TEST_P(RowInvarianceTest, UnwantedRowsLeaveTheBitsAlone) {
  TestModel model({options(2)});
  ASSERT_TRUE(model.ok());
  constexpr size_t kChunk = 15;
  const auto tokens = random_tokens(3 * kChunk, model->config().vocab_size, 6);
  const Rows expected = decode(model, tokens);
  const auto cache = model.make_cache(16, kEntries);
  // One text three times, one chunk apart, with logits of no row, of the last row and of every row of a
  // chunk.
  std::vector<KvSequence> sequences(3);
  for (auto& sequence : sequences) sequence = cache->open({});
  for (size_t round = 0; round < 5; ++round) {
    ForwardBatch batch;
    std::vector<KvTransaction> staged;
    std::vector<size_t> wanted;  // position of each row of logits
    for (size_t s = 0; s < sequences.size(); ++s) {
      if (round < s || round - s > 2) continue;
      const size_t begin = (round - s) * kChunk;
      const auto mode = static_cast<LogitsWanted>((s + round) % 3);
      staged.push_back(cache->stage(sequences[s], kChunk).value());
      append_chain(batch, sequences[s], staged.back(), std::span(tokens).subspan(begin, kChunk), mode);
      for (size_t i = 0; i < kChunk; ++i) {
        if (mode == LogitsWanted::kAll || (mode == LogitsWanted::kLast && i + 1 == kChunk))
          wanted.push_back(begin + i);
      }
    }
    const auto logits = model->forward(batch, *cache);
    ASSERT_EQ(logits.size(), wanted.size() * static_cast<size_t>(model->config().vocab_size));
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(logits_row(logits, static_cast<int>(i), *model), expected[wanted[i]]) << "round " << round;
    }
    std::vector<int> path(kChunk);
    std::iota(path.begin(), path.end(), 0);
    for (size_t s = 0, next = 0; s < sequences.size(); ++s) {
      if (round < s || round - s > 2) continue;
      staged[next++].commit(path, std::span(tokens).subspan((round - s) * kChunk, kChunk));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RowInvarianceTest, testing::ValuesIn(invariance_cases()), case_name);

TEST(PrefixSharing, SharedPagesGiveTheBitsOfTheOwnPrefill) {
  TestModel model({.name = "qwen3"});
  ASSERT_TRUE(model.ok());
  const auto tokens = random_tokens(kTokens, model->config().vocab_size, 5);
  const Rows expected = decode(model, tokens);
  const auto cache = model.make_cache(16, kEntries);
  KvSequence first = cache->open(tokens);
  run_chunk(*model, *cache, first, tokens);
  KvSequence second = cache->open(tokens);
  ASSERT_EQ(second.length(), 32);
  const Rows rest = run_chunk(*model, *cache, second, std::span(tokens).subspan(32));
  expect_same(Rows(expected.begin() + 32, expected.end()), rest, "after a shared beginning");
}

}  // namespace
}  // namespace outrider::row_invariance_test
