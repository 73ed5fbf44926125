// SPDX-License-Identifier: Apache-2.0
// The small random models of tests/data/models, loaded for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "formats/model_file.h"
#include "formats/random_model.h"
#include "models/backend/backend_kinds.h"
#include "models/model.h"

namespace outrider {

// A random model of a known shape (random_model.h) has no file.
inline std::string model_data(const std::string& name) {
  if (is_shape_path(name)) return name;
  return std::string(OUTRIDER_SOURCE_DIR) + "/tests/data/models/" + name;
}

// The names of all models of tests/data/models: "llama" for a directory, "llama.gguf" for a file.
inline std::vector<std::string> all_models(bool are_gguf_files = false) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(model_data(""))) {
    const bool is_wanted = are_gguf_files ? entry.path().extension() == ".gguf" : entry.is_directory();
    if (is_wanted) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

struct TestModelOptions {
  std::string name;  // a directory, a .gguf file, or shape_path()
  std::string_view kernels = "reference";
  std::optional<DType> weights = std::nullopt;
  int workers = 1;
  DType kv_type = DType::kF32;
  int64_t layers = 0;  // number of layers, taken from the file in turn; 0: as in the file
};

// Gives the model `count` layers by repeating its own in turn.
inline void repeat_layers(ModelFile& file, int64_t count) {
  const auto prefix = [](int64_t layer) { return "model.layers." + std::to_string(layer) + "."; };
  std::vector<std::pair<std::string, TensorView>> added;
  for (int64_t layer = file.config.layer_count; layer < count; ++layer) {
    const std::string from = prefix(layer % file.config.layer_count);
    for (const auto& [name, tensor] : file.tensors) {
      if (name.starts_with(from)) added.emplace_back(prefix(layer) + name.substr(from.size()), tensor);
    }
  }
  file.tensors.insert(added.begin(), added.end());
  file.config.layer_count = count;
}

// A model with the workers that run it.
class TestModel {
 public:
  explicit TestModel(const TestModelOptions& options) : pool_(options.workers), kv_type_(options.kv_type) {
    auto file = open_model(model_data(options.name));
    EXPECT_TRUE(file.ok()) << file.error().message;
    if (!file.ok()) return;
    const auto kernels = select_kernels(options.kernels);
    EXPECT_TRUE(kernels.ok()) << kernels.error().message;
    if (!kernels.ok()) return;
    if (options.layers > 0) repeat_layers(*file, options.layers);
    auto model = Model::load(*file, {.kernels = *kernels, .pool = &pool_, .weights = options.weights});
    EXPECT_TRUE(model.ok()) << model.error().message;
    if (model.ok()) model_ = std::move(model).value();
  }

  bool ok() const { return model_ != nullptr; }
  Model& operator*() { return *model_; }
  Model* operator->() { return model_.get(); }

  // A cache of `entries` poisoned entries.
  std::unique_ptr<KvCache> make_cache(int page_size, int64_t entries) const {
    KvShape shape = model_->kv_shape();
    shape.page_size = page_size;
    shape.type = kv_type_;
    shape.page_count = (entries + page_size - 1) / page_size;
    return std::make_unique<KvCache>(shape, KvOptions{.hash_bits = 64, .poison = true});
  }

 private:
  ThreadPool pool_;
  DType kv_type_;
  std::unique_ptr<Model> model_;
};

// A copy of row `index` of the logits.
inline std::vector<float> logits_row(std::span<const float> logits, int index, const Model& model) {
  const auto vocab = static_cast<size_t>(model.config().vocab_size);
  const auto row = logits.subspan(static_cast<size_t>(index) * vocab, vocab);
  return {row.begin(), row.end()};
}

// Runs `tokens` as the next chunk of one sequence, commits them and returns the logits of every row.
inline std::vector<std::vector<float>> run_chunk(Model& model, KvCache& cache, KvSequence& sequence,
                                                 std::span<const TokenId> tokens) {
  auto transaction = cache.stage(sequence, static_cast<int>(tokens.size()));
  EXPECT_TRUE(transaction.ok());
  ForwardBatch batch;
  append_chain(batch, sequence, *transaction, tokens, LogitsWanted::kAll);
  const auto logits = model.forward(batch, cache);
  std::vector<std::vector<float>> rows;
  std::vector<int> path;
  for (int i = 0; i < static_cast<int>(tokens.size()); ++i) {
    rows.push_back(logits_row(logits, i, model));
    path.push_back(i);
  }
  transaction->commit(path, tokens);
  return rows;
}

inline std::vector<TokenId> random_tokens(int count, int64_t vocab_size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back(static_cast<TokenId>(random() % static_cast<uint32_t>(vocab_size)));
  }
  return tokens;
}

// A cache of 32 pages of 4 entries, so that short runs cross pages.
inline KvShape small_cache_shape(const Model& model) {
  KvShape shape = model.kv_shape();
  shape.page_size = 4;
  shape.page_count = 32;
  return shape;
}

// Numbers of a prompt, a tree with a committed second branch, which moves entries, and a token after it.
inline std::vector<float> numbers_of_run(Model& model, KvCache& cache) {
  const int64_t layers = model.config().layer_count;
  model.tap({.layers = {0, layers - 1, layers}, .final_norm = true});
  EXPECT_TRUE(model.reserve(16, 16).ok());
  std::vector<float> numbers;
  const auto add = [&](std::span<const float> more) {
    numbers.insert(numbers.end(), more.begin(), more.end());
  };
  const std::vector<TokenId> prompt = random_tokens(9, model.config().vocab_size, 1);
  KvSequence sequence = cache.open(prompt);
  for (const auto& row : run_chunk(model, cache, sequence, prompt)) add(row);
  add(model.features());
  {
    const std::vector<TokenId> tokens = random_tokens(5, model.config().vocab_size, 2);
    auto transaction = cache.stage(sequence, 5);
    ForwardBatch batch;
    append_tree(batch, sequence, *transaction, {tokens, std::vector{-1, 0, 0, 2, 3}}, LogitsWanted::kAll);
    batch.hidden_state_rows = {1, 3};
    add(model.forward(batch, cache));
    add(model.hidden_states());
    const std::vector<int> path = {0, 2, 3};
    transaction->commit(path, std::vector{tokens[0], tokens[2], tokens[3]});
  }
  for (const auto& row : run_chunk(model, cache, sequence, random_tokens(1, model.config().vocab_size, 3)))
    add(row);
  LayerBackend& backend = model.backend();
  BackendRows states(backend);
  states.reserve(2, model.config().hidden_size);
  model.embed_tokens(random_tokens(2, model.config().vocab_size, 4), states.data());
  add(backend.read(states.data(), 2 * model.config().hidden_size));
  add(backend.read(model.output_head(states.data(), 2), 2 * model.config().vocab_size));
  return numbers;
}

// A backend beside which there is no model.
inline std::unique_ptr<LayerBackend> bare_backend(const ModelOptions& options) {
  return make_backend(ModelConfig(), options, [] { return DecoderWeights(); }).value();
}

// Numbers of a test in the memory of a backend.
class PlacedRows {
 public:
  PlacedRows(LayerBackend& backend, std::span<const float> numbers) : rows_(backend) {
    rows_.reserve(1, std::ssize(numbers));
    backend.write(numbers, rows_.data());
  }
  operator FloatAddress() const { return rows_.data(); }
  FloatAddress operator+(int64_t count) const { return rows_.data() + count; }

 private:
  BackendRows rows_;
};

inline std::vector<float> numbers_at(LayerBackend& backend, FloatAddress from, int64_t count) {
  const std::span<const float> numbers = backend.read(from, count);
  return {numbers.begin(), numbers.end()};
}

// The parameter of a test suite that runs with several models, kernel tables and weight types.
struct ModelCase {
  std::string model;
  std::string kernels;
  std::optional<DType> weights = std::nullopt;
  DType kv_type = DType::kF32;
};

inline TestModelOptions options_for(const ModelCase& model_case, int workers, int64_t layers = 0) {
  return {.name = model_case.model,
          .kernels = model_case.kernels,
          .weights = model_case.weights,
          .workers = workers,
          .kv_type = model_case.kv_type,
          .layers = layers};
}

inline std::string case_name(const testing::TestParamInfo<ModelCase>& info) {
  const auto& weights = info.param.weights;
  return info.param.model + "_" + info.param.kernels + "_" +
         (weights ? std::string(dtype_name(*weights)) : "stored") + "_kv_" +
         std::string(dtype_name(info.param.kv_type));
}

}  // namespace outrider
