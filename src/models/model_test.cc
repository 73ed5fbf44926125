// SPDX-License-Identifier: Apache-2.0
#include "models/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/model_test_data.h"

namespace outrider {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class LoadTest : public testing::Test {
 protected:
  ModelFile open(const std::string& name) {
    auto file = open_model(model_data(name));
    EXPECT_TRUE(file.ok()) << file.error().message;
    return std::move(file).value();
  }
  Result<std::unique_ptr<Model>> load(const ModelFile& file, std::optional<DType> weights = std::nullopt) {
    return Model::load(file, {.kernels = *select_kernels("reference"), .pool = &pool_, .weights = weights});
  }

  ThreadPool pool_{1};
};

TEST_F(LoadTest, CountsParametersOnce) {
  // Per layer: 64 x (64 + 32 + 32 + 64) attention, 3 x 64 x 64 MLP, two norms.
  constexpr int64_t kLayer = 64 * 192 + 3 * 64 * 64 + 2 * 64;
  const auto tied = load(open("llama_tied"));
  ASSERT_TRUE(tied.ok());
  EXPECT_EQ((*tied)->parameter_count(), 288 * 64 + 2 * kLayer + 64);
  EXPECT_GE((*tied)->weight_bytes(), (*tied)->parameter_count() * 4);
}

TEST_F(LoadTest, ConvertsWeights) {
  const ModelFile file = open("llama_tied");
  const auto full = load(file, DType::kF32);
  const auto half = load(file, DType::kBF16);
  const auto eighth = load(file, DType::kQ4_0);
  ASSERT_TRUE(full.ok() && half.ok() && eighth.ok());
  EXPECT_LT((*half)->weight_bytes(), 0.52 * static_cast<double>((*full)->weight_bytes()));
  EXPECT_LT((*eighth)->weight_bytes(), 0.2 * static_cast<double>((*full)->weight_bytes()));
}

TEST_F(LoadTest, KeepsMatricesThatBlocksDoNotDivide) {
  EXPECT_TRUE(load(open("llama_rope_linear"), DType::kQ4_0).ok());  // its down projection has rows of 80
}

TEST_F(LoadTest, RefusesTypesNothingConvertsTo) {
  const auto refused = load(open("llama"), DType::kQ6_K);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("q8_0"), HasSubstr("q6_k")));
}

TEST_F(LoadTest, RefusesAnUnknownFamily) {
  ModelFile file = open("llama");
  file.config.family = "mamba";
  const auto refused = load(file);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("mamba"), HasSubstr("llama, mistral, qwen2, qwen3")));
}

TEST_F(LoadTest, RefusesVariantsTheFamilyDoesNotHave) {
  ModelFile file = open("mistral");
  file.config.qk_norm = QkNorm::kHead;
  const auto refused = load(file);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("norms of queries and keys"));
}

TEST_F(LoadTest, NamesAMissingTensor) {
  ModelFile file = open("llama");
  file.tensors.erase("model.layers.1.mlp.up_proj.weight");
  const auto refused = load(file);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("model.layers.1.mlp.up_proj.weight"));
}

TEST_F(LoadTest, NamesAMissingExpert) {
  ModelFile file = open("mixtral");
  file.tensors.erase("model.layers.1.mlp.experts.up_proj.3.weight");
  const auto refused = load(file);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("model.layers.1.mlp.experts.up_proj.3.weight"));
}

// A row passes two of five experts of a layer, and the router.
TEST_F(LoadTest, AMixtureReadsTheExpertsThatARowUses) {
  const auto model = load(open("mixtral"), DType::kF32);
  ASSERT_TRUE(model.ok());
  const int64_t of_expert = 3 * 24 * 16 * static_cast<int64_t>(sizeof(float));
  const int64_t table = 288 * 24 * static_cast<int64_t>(sizeof(float));
  EXPECT_EQ((*model)->weight_bytes() - (*model)->streamed_bytes(), table + 2 * 3 * of_expert);
}

TEST_F(LoadTest, NamesATensorOfWrongShape) {
  ModelFile file = open("llama");
  file.config.ffn_size = 64;
  const auto refused = load(file);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("[64, 64]"), HasSubstr("[96, 64]")));
}

// In Q4_K_M files v has another type than q and k, and is packed apart from them.
TEST_F(LoadTest, MixedTypesOfOneProjectionGiveTheSameNumbers) {
  ModelFile file = open("llama_tied");
  ASSERT_EQ(file.tensors.at("model.layers.0.self_attn.v_proj.weight").dtype, DType::kF32);
  const auto rounded = load(file, DType::kBF16);
  std::vector<std::vector<std::byte>> converted;
  for (auto& [name, view] : file.tensors) {
    const bool is_matrix = view.shape.size() == 2;
    if (!is_matrix) continue;
    const bool kept = name.find("q_proj") == std::string::npos && name.find("up_proj") == std::string::npos;
    const DType dtype = kept ? DType::kBF16 : DType::kF32;
    auto& bytes = converted.emplace_back(static_cast<size_t>(view.rows() * row_bytes(dtype, view.cols())));
    std::vector<float> row(static_cast<size_t>(view.cols()));
    for (int64_t r = 0; r < view.rows(); ++r) {
      dequantize_row(view.dtype, view.data + r * row_bytes(view.dtype, view.cols()), row.data(), view.cols());
      for (float& value : row) value = bf16_to_f32(f32_to_bf16(value));
      quantize_row(dtype, row.data(), bytes.data() + r * row_bytes(dtype, view.cols()), view.cols());
    }
    view.dtype = dtype;
    view.data = bytes.data();
  }
  const auto mixed = load(file);
  ASSERT_TRUE(rounded.ok() && mixed.ok());
  const auto run = [&](Model& model) {
    KvShape shape = model.kv_shape();
    shape.page_count = 4;
    KvCache cache(shape);
    KvSequence sequence = cache.open({});
    return run_chunk(model, cache, sequence, random_tokens(20, 288, 7));
  };
  EXPECT_EQ(run(**mixed), run(**rounded));
}

TEST(ForwardBatch, ChainSeesEverythingBefore) {
  KvCache cache({.layer_count = 1, .kv_head_count = 1, .head_dim = 2, .page_size = 2, .page_count = 4});
  KvSequence sequence = cache.open({});
  const std::vector<TokenId> tokens = {7, 8, 9};
  {
    auto transaction = cache.stage(sequence, 1);
    transaction->commit(std::vector<int>{0}, std::vector<TokenId>{5});
  }
  auto transaction = cache.stage(sequence, 3);
  ForwardBatch batch;
  EXPECT_EQ(append_chain(batch, sequence, *transaction, tokens, LogitsWanted::kLast), 0);
  EXPECT_THAT(batch.positions, ElementsAre(1, 2, 3));
  EXPECT_THAT(batch.prefix_len, ElementsAre(2, 3, 4));
  EXPECT_THAT(batch.tail_begin, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(batch.page_begin, ElementsAre(0, 2));
  EXPECT_THAT(batch.logits_rows, ElementsAre(2));
  EXPECT_EQ(batch.slots[0], transaction->slot(0));
}

TEST(ForwardBatch, TreeRowsSeeAncestorsAndTakeTheirDepthAsPosition) {
  KvCache cache({.layer_count = 1, .kv_head_count = 1, .head_dim = 2, .page_size = 2, .page_count = 6});
  KvSequence sequence = cache.open({});
  {
    auto transaction = cache.stage(sequence, 2);
    transaction->commit(std::vector<int>{0, 1}, std::vector<TokenId>{5, 6});
  }
  auto transaction = cache.stage(sequence, 5);
  ForwardBatch batch;
  const std::vector<TokenId> tokens = {10, 11, 12, 13, 14};
  const std::vector<int> parents = {-1, 0, 0, 2, 1};
  EXPECT_EQ(append_tree(batch, sequence, *transaction, {tokens, parents}, LogitsWanted::kAll), 0);
  EXPECT_THAT(batch.positions, ElementsAre(2, 3, 3, 4, 4));
  EXPECT_THAT(batch.prefix_len, ElementsAre(2, 2, 2, 2, 2));
  EXPECT_THAT(batch.tail_begin, ElementsAre(0, 1, 3, 5, 8, 11));
  EXPECT_THAT(batch.tails, ElementsAre(2, 2, 3, 2, 4, 2, 4, 5, 2, 3, 6));
  EXPECT_THAT(batch.logits_rows, ElementsAre(0, 1, 2, 3, 4));
  batch.clear();
  EXPECT_EQ(batch.rows(), 0);
  EXPECT_THAT(batch.page_begin, ElementsAre(0));
}

}  // namespace
}  // namespace outrider
