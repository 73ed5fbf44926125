// SPDX-License-Identifier: Apache-2.0
// Adapters against PEFT (tools/make_adapter_goldens.py) and against merged weights, and the bits of adapted
// rows.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/adapters/adapter_file.h"
#include "models/blocks/low_rank/adapter_set.h"
#include "models/model_test_data.h"
#include "tests/support/adapter_folder.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

using Rows = std::vector<std::vector<float>>;

fs::path adapter_data(const std::string& name) {
  return fs::path(OUTRIDER_SOURCE_DIR) / "tests/data/adapters" / name;
}

std::vector<std::string> golden_adapters() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(adapter_data(""))) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

// Loads an adapter into a model; returns its number.
int32_t load(TestModel& model, const fs::path& path) {
  const auto file = open_adapter(path, model->config());
  EXPECT_TRUE(file.ok()) << file.error().message;
  const auto number = model->adapters()->add(*file);
  EXPECT_TRUE(number.ok()) << number.error().message;
  return *number;
}

Rows logits_with(TestModel& model, const std::vector<ScaledAdapter>& adapters,
                 std::span<const TokenId> tokens, size_t chunk = 1000) {
  const auto cache = model.make_cache(16, 256);
  KvSequence sequence = cache->open({});
  sequence.set_adapters(adapters);
  Rows rows;
  while (rows.size() < tokens.size()) {
    const size_t count = std::min(chunk, tokens.size() - rows.size());
    const Rows part = run_chunk(*model, *cache, sequence, tokens.subspan(rows.size(), count));
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  return largest;
}

void expect_golden(TestModel& model, const std::string& name, const fs::path& path) {
  const auto golden = nlohmann::json::parse(std::ifstream(adapter_data(name) / "golden.json"));
  const std::vector<TokenId> tokens = golden.at("tokens");
  const Rows rows = logits_with(model, {{load(model, path), 1}}, tokens);
  for (size_t i = 0; i < golden.at("rows").size(); ++i) {
    const std::vector<float> expected = golden.at("logits")[i];
    const std::vector<float>& found = rows[golden.at("rows")[i].get<size_t>()];
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_LT(largest_difference(found, expected), 1e-3) << name << ", row " << golden.at("rows")[i];
  }
}

TEST(Adapters, AgreeWithPeft) {
  ASSERT_GE(golden_adapters().size(), 10u);
  for (const std::string_view kernels : available_kernels()) {
    for (const std::string& name : golden_adapters()) {
      SCOPED_TRACE(name + " " + std::string(kernels));
      TestModel model({.name = name, .kernels = kernels, .weights = DType::kF32});
      ASSERT_TRUE(model.ok());
      expect_golden(model, name, adapter_data(name));
    }
  }
}

// Adapters of either kind fit models of either kind, though rows of queries and keys are in another order.
TEST(Adapters, ChangeGgufFilesAndDirectoriesAlike) {
  const auto tokens = random_tokens(20, 280, 5);
  std::vector<Rows> all;
  for (const char* name : {"llama", "llama.gguf"}) {
    TestModel model({.name = name, .weights = DType::kF32});
    ASSERT_TRUE(model.ok());
    expect_golden(model, "llama", adapter_data("llama"));
    expect_golden(model, "llama", adapter_data("llama") / "adapter.gguf");
    all.push_back(logits_with(model, {{load(model, adapter_data("llama")), 1}}, tokens));
    all.push_back(logits_with(model, {{load(model, adapter_data("llama") / "adapter.gguf"), 1}}, tokens));
  }
  EXPECT_EQ(all[0], all[2]) << "a PEFT folder";
  EXPECT_EQ(all[1], all[3]) << "a GGUF file";
}

// W + scale * B A in f32, which rounds otherwise than the two products do.
void merge(ModelFile& file, const AdapterFile& adapter, double factor, std::vector<Buffer>& merged) {
  const auto numbers = [](const TensorView& view) {
    std::vector<float> all(static_cast<size_t>(view.rows() * view.cols()));
    std::vector<std::byte> made;
    for (int64_t row = 0; row < view.rows(); ++row)
      dequantize_row(view.dtype, view.row(row, made), all.data() + row * view.cols(), view.cols());
    return all;
  };
  for (const LowRankUpdate& update : adapter.updates) {
    TensorView& view = file.tensors.at(update.matrix + ".weight");
    const std::vector<float> a = numbers(update.a), b = numbers(update.b), w = numbers(view);
    const int64_t rank = update.a.rows(), n = view.rows(), k = view.cols();
    Buffer& buffer = merged.emplace_back(static_cast<size_t>(n * k) * sizeof(float));
    float* sum = buffer.as<float>().data();
    for (int64_t i = 0; i < n * k; ++i) {
      double product = 0;
      for (int64_t r = 0; r < rank; ++r)
        product +=
            double{b[static_cast<size_t>(i / k * rank + r)]} * double{a[static_cast<size_t>(r * k + i % k)]};
      sum[i] = static_cast<float>(w[static_cast<size_t>(i)] + factor * update.scale * product);
    }
    view = {DType::kF32, {n, k}, buffer.data()};
  }
}

TEST(Adapters, EqualMergedWeightsButForRounding) {
  const fs::path folder = fs::path(testing::TempDir()) / "merged_adapter";
  TestModel model({.name = "qwen2", .weights = DType::kF32});
  ASSERT_TRUE(model.ok());
  write_adapter(folder, model->config(), 3);
  auto file = open_model(model_data("qwen2"));
  const auto adapter = open_adapter(folder, file->config);
  ASSERT_TRUE(file.ok() && adapter.ok());
  std::vector<Buffer> merged;
  merge(*file, *adapter, 0.5, merged);
  ThreadPool pool(1);
  auto other =
      Model::load(*file, {.kernels = *select_kernels("reference"), .pool = &pool, .weights = std::nullopt});
  ASSERT_TRUE(other.ok()) << other.error().message;
  const auto tokens = random_tokens(24, model->config().vocab_size, 6);
  const Rows rows = logits_with(model, {{load(model, folder), 0.5F}}, tokens);
  const Rows plain = logits_with(model, {}, tokens);
  KvShape shape = (*other)->kv_shape();
  shape.type = DType::kF32;
  shape.page_size = 16;
  shape.page_count = 8;
  KvCache cache(shape);
  KvSequence sequence = cache.open({});
  const Rows expected = run_chunk(**other, cache, sequence, tokens);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_LT(largest_difference(rows[i], expected[i]), 1e-4);
    EXPECT_GT(largest_difference(rows[i], plain[i]), 1e-2) << "the adapter changes nothing";
  }
}

struct Text {
  std::vector<ScaledAdapter> adapters = {};
  std::vector<TokenId> tokens = {};
  size_t chunk = 1;
};

// All texts in one batch, each with its own chunks.
std::vector<Rows> logits_together(TestModel& model, const std::vector<Text>& texts) {
  const auto cache = model.make_cache(4, 1024);
  std::vector<KvSequence> sequences;
  for (const Text& text : texts) {
    sequences.push_back(cache->open({}, sequences.size()));
    sequences.back().set_adapters(text.adapters);
  }
  std::vector<Rows> rows(texts.size());
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    ForwardBatch batch;
    std::vector<std::pair<size_t, KvTransaction>> staged;
    std::vector<int> first;
    for (size_t i = 0; i < texts.size(); ++i) {
      const size_t count = std::min(texts[i].chunk, texts[i].tokens.size() - rows[i].size());
      if (count == 0) continue;
      auto transaction = cache->stage(sequences[i], static_cast<int>(count));
      EXPECT_TRUE(transaction.ok());
      first.push_back(append_chain(batch, sequences[i], *transaction,
                                   std::span(texts[i].tokens).subspan(rows[i].size(), count),
                                   LogitsWanted::kAll));
      staged.emplace_back(i, std::move(transaction).value());
      goes_on = true;
    }
    const auto logits = model->forward(batch, *cache);
    for (size_t s = 0; s < staged.size(); ++s) {
      auto& [i, transaction] = staged[s];
      std::vector<int> path;
      const size_t begin = rows[i].size();
      for (int r = 0; r < transaction.count(); ++r) {
        rows[i].push_back(logits_row(logits, first[s] + r, *model));
        path.push_back(r);
      }
      transaction.commit(path, std::span(texts[i].tokens).subspan(begin, path.size()));
    }
  }
  return rows;
}

TEST(Adapters, GiveRowsTheBitsThatTheyHaveAlone) {
  for (const std::string_view kernels : available_kernels()) {
    for (const char* name : {"llama", "qwen3_next", "mixtral", "gemma3"}) {
      for (const int workers : {1, 3}) {
        SCOPED_TRACE(std::string(kernels) + " " + name + " " + std::to_string(workers));
        TestModel model({.name = name, .kernels = kernels, .workers = workers});
        ASSERT_TRUE(model.ok());
        std::vector<int32_t> adapters;
        for (uint32_t seed = 0; seed < 4; ++seed) {
          const fs::path folder = fs::path(testing::TempDir()) / ("row_adapter_" + std::to_string(seed));
          write_adapter(folder, model->config(), seed, {.rank = 1 + 5 * int64_t{seed}});
          adapters.push_back(load(model, folder));
        }
        std::vector<Text> texts;
        for (uint32_t i = 0; i < 9; ++i) {
          Text text{.tokens = random_tokens(21, model->config().vocab_size, i), .chunk = 1 + 7 * (i % 4)};
          if (i % 3 != 2) text.adapters.push_back({adapters[i % 4], 1});
          if (i % 5 == 1) text.adapters.push_back({adapters[(i + 1) % 4], -0.25F});
          texts.push_back(std::move(text));
        }
        const std::vector<Rows> together = logits_together(model, texts);
        for (size_t i = 0; i < texts.size(); ++i)
          EXPECT_EQ(together[i], logits_with(model, texts[i].adapters, texts[i].tokens)) << "text " << i;
      }
    }
  }
}

TEST(Adapters, GiveTheirMemoryBack) {
  TestModel model({.name = "llama"});
  ASSERT_TRUE(model.ok());
  AdapterSet& set = *model->adapters();
  const int32_t first = load(model, adapter_data("llama"));
  const int64_t bytes = set.bytes();
  EXPECT_GT(bytes, 0);
  const int32_t second = load(model, adapter_data("llama"));
  EXPECT_EQ(set.bytes(), 2 * bytes);
  set.remove(first);
  EXPECT_EQ(set.bytes(), bytes);
  EXPECT_EQ(load(model, adapter_data("llama")), first) << "its number is free again";
  EXPECT_NE(first, second);
}

TEST(Adapters, MatricesThatTakeNoneAreNamed) {
  TestModel model({.name = "mixtral"});
  ASSERT_TRUE(model.ok());
  auto file = open_adapter(adapter_data("mixtral"), model->config());
  ASSERT_TRUE(file.ok()) << file.error().message;
  file->updates.front().matrix = "model.layers.0.mlp.experts.gate_proj.0";
  const auto refused = model->adapters()->add(*file);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("model.layers.0.mlp.experts"), std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("take no adapters"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace outrider
