// SPDX-License-Identifier: Apache-2.0
#include "models/weights/weight_stream.h"

#include <gtest/gtest.h>

#include "models/model_test_data.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLayers = 12;
const std::vector<TokenId> kTokens = {3, 1, 4, 1, 5, 9, 2, 6};

class WeightStreamTest : public testing::Test {
 protected:
  WeightStreamTest() : folder_(testing::TempDir() + "outrider_weight_stream_test") {
    fs::remove_all(folder_);
  }
  ~WeightStreamTest() override { fs::remove_all(folder_); }

  std::unique_ptr<Model> load(const std::string& name, bool streams, std::string_view kernels = "reference") {
    auto file = open_model(model_data(name));
    EXPECT_TRUE(file.ok());
    repeat_layers(*file, kLayers);
    auto model = Model::load(*file, {.kernels = *select_kernels(kernels),
                                     .pool = &pool_,
                                     .weights = std::nullopt,
                                     .packed_cache = folder_,
                                     .streams_layers = streams});
    EXPECT_TRUE(model.ok()) << model.error().message;
    return std::move(model).value();
  }

  // The logits of every token, in passes over so many of them.
  std::vector<std::vector<float>> logits(Model& model, size_t rows = 1) const {
    KvShape shape = model.kv_shape();
    shape.page_size = 16;
    shape.page_count = 1;
    KvCache cache(shape);
    KvSequence sequence = cache.open({});
    std::vector<std::vector<float>> all;
    for (size_t i = 0; i < kTokens.size(); i += rows) {
      for (auto& row : run_chunk(model, cache, sequence, std::span(kTokens).subspan(i, rows)))
        all.push_back(std::move(row));
    }
    return all;
  }

  // The bytes that leave `streamed` of the layers to be read, which are of one size.
  static int64_t bytes_for(Model& model, int64_t streamed) {
    const int64_t layer = model.streaming()->bytes / kLayers;
    return layer * (kLayers - streamed + 2);
  }

  fs::path folder_;
  ThreadPool pool_{2};
};

TEST_F(WeightStreamTest, ComputesWhatAModelInMemoryComputes) {
  for (const char* name : {"llama", "gpt2", "granite"}) {
    for (const std::string_view kernels : available_kernels()) {
      SCOPED_TRACE(std::string(name) + " " + std::string(kernels));
      const auto expected = logits(*load(name, /*streams=*/false, kernels));
      for (const int64_t streamed : {kLayers, kLayers / 2, int64_t{4}, int64_t{0}}) {
        const auto model = load(name, /*streams=*/true, kernels);
        ASSERT_TRUE(model->keep_layers(bytes_for(*model, streamed)).ok());
        EXPECT_EQ(logits(*model), expected) << streamed << " layers streamed";
        const LayerStreaming streaming = *model->streaming();
        EXPECT_EQ(streaming.bytes == 0, streamed == 0);
        if (streamed == 0) continue;
        EXPECT_GT(streaming.rate, 0);
        // Every pass reads every streamed layer once, and the first ones are there when it begins.
        const auto passes = std::ssize(kTokens);
        EXPECT_LE(streaming.bytes_read, passes * streaming.bytes + 2 * streaming.bytes / streamed);
        EXPECT_GE(streaming.bytes_read, (passes - 1) * streaming.bytes);
      }
    }
  }
}

TEST_F(WeightStreamTest, ServesLayersOfEveryKind) {
  for (const char* name : {"lfm2", "qwen3_5", "olmo2"}) {
    SCOPED_TRACE(name);
    const auto expected = logits(*load(name, /*streams=*/false));
    const auto model = load(name, /*streams=*/true);
    ASSERT_TRUE(model->keep_layers(model->streaming()->bytes / 2).ok());
    EXPECT_GT(model->streaming()->bytes, 0);
    EXPECT_EQ(logits(*model), expected);
  }
}

// From the least memory on, with which layers are read, too, to the memory of the whole model.
TEST_F(WeightStreamTest, ComputesWhatAMixtureInMemoryComputes) {
  constexpr int64_t kAll = int64_t{1} << 30;
  for (const char* name : {"mixtral", "gpt_oss", "qwen3_5_moe", "deepseek_v2", "llama4"}) {
    for (const std::string_view kernels : available_kernels()) {
      SCOPED_TRACE(std::string(name) + " " + std::string(kernels));
      const auto expected = logits(*load(name, /*streams=*/false, kernels));
      for (const double share : {1.0, 1.3, 2.0, 4.0, 0.0}) {  // of the least memory; 0: all
        const auto model = load(name, /*streams=*/true, kernels);
        const double least = static_cast<double>(model->streaming()->kept_bytes);
        const auto bytes = share == 0 ? kAll : static_cast<int64_t>(share * least);
        ASSERT_TRUE(model->keep_layers(bytes).ok());
        EXPECT_LE(model->streaming()->kept_bytes, bytes);
        EXPECT_EQ(logits(*model), expected) << share;
        // Such a pass activates more experts than the least memory has room for.
        EXPECT_EQ(logits(*model, kTokens.size()), expected) << share;
        EXPECT_EQ(model->streaming()->bytes_read == 0, model->streaming()->bytes == 0) << share;
        EXPECT_EQ(share == 0, model->streaming()->bytes == 0);
      }
    }
  }
}

TEST_F(WeightStreamTest, ServesPassesThatLeaveLayersOut) {
  const auto whole = load("llama", /*streams=*/false);
  const auto model = load("llama", /*streams=*/true);
  ASSERT_TRUE(model->keep_layers(bytes_for(*model, 8)).ok());
  LayerSubset subset{.count = 9, .skip_attention = {}, .skip_mlp = {}};
  subset.skip_attention = {0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0};
  subset.skip_mlp = subset.skip_attention;
  const auto run = [&](Model& network) {
    KvShape shape = network.kv_shape();
    shape.page_size = 16;
    shape.page_count = 1;
    KvCache cache(shape);
    KvSequence sequence = cache.open({});
    auto transaction = cache.stage(sequence, 3);
    ForwardBatch batch;
    append_chain(batch, sequence, *transaction, std::span(kTokens).first(3), LogitsWanted::kAll);
    const auto output = network.forward_subset(batch, cache, subset).logits;
    return std::vector<float>(output.begin(), output.end());
  };
  const auto expected_whole = logits(*whole);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(run(*model), run(*whole));
    EXPECT_EQ(logits(*model), expected_whole);
  }
}

TEST_F(WeightStreamTest, NamesTheMemoryThatItNeeds) {
  const auto model = load("llama", /*streams=*/true);
  const int64_t minimum = bytes_for(*model, kLayers);
  const Status refused = model->keep_layers(minimum - 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("weights that are read need"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(model->keep_layers(minimum).ok());
}

TEST_F(WeightStreamTest, EndsThePassWhenTheFileCannotBeRead) {
  const auto model = load("llama", /*streams=*/true);
  ASSERT_TRUE(model->keep_layers(bytes_for(*model, kLayers)).ok());
  logits(*model);
  for (const auto& entry : fs::directory_iterator(folder_)) fs::resize_file(entry.path(), DirectFile::kBlock);
  EXPECT_THROW(logits(*model), ReadFailure);
  EXPECT_THROW(logits(*model), ReadFailure);
}

TEST_F(WeightStreamTest, EndsThePassWhenAnExpertCannotBeRead) {
  const auto model = load("mixtral", /*streams=*/true);
  ASSERT_TRUE(model->keep_layers(model->streaming()->kept_bytes).ok());
  logits(*model);
  for (const auto& entry : fs::directory_iterator(folder_)) fs::resize_file(entry.path(), DirectFile::kBlock);
  EXPECT_THROW(logits(*model), ReadFailure);
  EXPECT_THROW(logits(*model, kTokens.size()), ReadFailure);
}

TEST_F(WeightStreamTest, NeedsAFolder) {
  const auto file = open_model(model_data("llama"));
  const auto model = Model::load(*file, {.kernels = *select_kernels("reference"),
                                         .pool = &pool_,
                                         .weights = std::nullopt,
                                         .streams_layers = true});
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().message.find("--packed-cache"), std::string::npos) << model.error().message;
}

}  // namespace
}  // namespace outrider
