// SPDX-License-Identifier: Apache-2.0
#include "formats/random_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "formats/test_outcome.h"

namespace outrider {
namespace {

ModelFile opened(std::string_view name, DType dtype) {
  auto config = shape_config(name);
  auto model = open_model(shape_path(name, dtype, config->vocab_size));
  EXPECT_TRUE(model.ok()) << model.error().message;
  return std::move(model).value();
}

uint16_t half_at(const std::byte* data) {
  uint16_t bits;
  std::memcpy(&bits, data, sizeof(bits));
  return bits;
}

TEST(RandomModel, HasTheParametersOfItsShape) {
  const ModelFile model = opened("llama-1b", DType::kQ4_0);
  int64_t parameters = 0;
  for (const auto& [name, view] : model.tensors) parameters += view.rows() * view.cols();
  EXPECT_EQ(parameters, 1100048384);  // TinyLlama 1.1B
  EXPECT_EQ(model.tensors.at("model.layers.21.mlp.down_proj.weight").shape, (Shape{2048, 5632}));
  EXPECT_EQ(model.tensors.at("lm_head.weight").dtype, DType::kQ4_0);
  EXPECT_EQ(model.tokenizer.pieces.size(), 32000u);
}

TEST(RandomModel, HasLatentAttentionAndSharedExperts) {
  const ModelFile model = opened("deepseek-v2-lite", DType::kQ4_0);
  int64_t parameters = 0;
  for (const auto& [name, view] : model.tensors) parameters += view.rows() * view.cols();
  EXPECT_EQ(parameters, 15706484224);  // DeepSeek-V2-Lite
}

TEST(RandomModel, NumbersAreFiniteSmallAndVaried) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const ModelFile model = opened("llama-25m", dtype);
    const TensorView& view = model.tensors.at("model.layers.0.self_attn.q_proj.weight");
    std::set<float> seen;
    for (int64_t i = 0; i < 1000; ++i) {
      float number;
      const std::byte* at = view.data + i * block_bytes(dtype);
      if (dtype == DType::kF32) std::memcpy(&number, at, sizeof(number));
      if (dtype == DType::kF16) number = f16_to_f32(half_at(at));
      if (dtype == DType::kBF16) number = bf16_to_f32(half_at(at));
      EXPECT_GE(std::abs(number), 1.0F / 64);
      EXPECT_LT(std::abs(number), 1.0F / 32);
      seen.insert(number);
    }
    EXPECT_GT(seen.size(), 200u) << dtype_name(dtype);
  }
}

TEST(RandomModel, ScalesOfBlocksKeepNumbersSmall) {
  struct Case {
    DType dtype;
    int64_t scale_at;
    float largest_factor;  // the largest multiple of a block's scale
  };
  constexpr int kBlocks = 500;
  for (const Case& c : {Case{DType::kQ8_0, 0, 127},
                        Case{DType::kQ4_0, 0, 8},
                        Case{DType::kQ4_1, 0, 15},
                        Case{DType::kQ5_0, 0, 16},
                        Case{DType::kQ5_1, 0, 31},
                        Case{DType::kQ2_K, 80, 15 * 3},
                        Case{DType::kQ2_K, 82, 15},
                        Case{DType::kQ3_K, 108, 32 * 4},
                        Case{DType::kQ4_K, 0, 63 * 15},
                        Case{DType::kQ4_K, 2, 63},
                        Case{DType::kQ5_K, 0, 63 * 31},
                        Case{DType::kQ6_K, 208, 127 * 32},
                        Case{DType::kIQ1_S, 0, 15 * 9 / 8.0F},
                        Case{DType::kIQ2_XXS, 0, 4 * 43},
                        Case{DType::kIQ2_XS, 0, 4 * 43},
                        Case{DType::kIQ2_S, 0, 4 * 43},
                        Case{DType::kIQ3_XXS, 0, 8 * 62},
                        Case{DType::kIQ3_S, 0, 31 * 15},
                        Case{DType::kIQ4_NL, 0, 127},
                        Case{DType::kIQ4_XS, 0, 32 * 127},
                        Case{DType::kTQ1_0, 52, 1},
                        Case{DType::kTQ2_0, 64, 2}}) {
    SCOPED_TRACE(dtype_name(c.dtype));
    const ModelFile model = opened("llama-1b", c.dtype);
    const TensorView& view = model.tensors.at("lm_head.weight");
    int negative = 0;
    for (int64_t block = 0; block < kBlocks; ++block) {
      const float scale = f16_to_f32(half_at(view.data + block * block_bytes(c.dtype) + c.scale_at));
      negative += scale < 0 ? 1 : 0;
      EXPECT_NE(scale, 0);
      EXPECT_LE(std::abs(scale) * c.largest_factor, 0.1F);
    }
    EXPECT_NEAR(negative, c.dtype == DType::kQ4_0 ? kBlocks / 2 : 0, kBlocks / 10);
  }
}

TEST(RandomModel, NormsAreOneAndBiasesZero) {
  const ModelFile model = opened("qwen2.5-0.5b", DType::kQ8_0);
  float number = 2;
  std::memcpy(&number, model.tensors.at("model.norm.weight").data + 895 * sizeof(float), sizeof(number));
  EXPECT_EQ(number, 1);
  std::memcpy(&number, model.tensors.at("model.layers.3.self_attn.q_proj.bias").data, sizeof(number));
  EXPECT_EQ(number, 0);
  EXPECT_FALSE(model.tensors.contains("lm_head.weight"));
}

TEST(RandomModel, ADraftSharesTheTargetsVocabulary) {
  const auto target = open_model(shape_path("llama-8b", DType::kQ4_0, 128256));
  const auto draft = open_model(shape_path("llama-68m", DType::kQ4_0, 128256));
  ASSERT_TRUE(target.ok() && draft.ok());
  EXPECT_EQ(target->tokenizer.pieces, draft->tokenizer.pieces);
  EXPECT_EQ(draft->tensors.at("lm_head.weight").shape, (Shape{128256, 768}));
}

TEST(RandomModel, RefusesWhatItCannotMake) {
  const auto unknown = shape_config("llama-2b");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("llama-1b"), std::string::npos);
  expect_refused(open_model("shape:llama-1b"), "shape:NAME,TYPE,VOCABULARY");
  expect_refused(open_model("shape:llama-1b,q3,32000"), "weight type");
  expect_refused(open_model("shape:llama-1b,i8,32000"), "weight type");
  expect_refused(open_model("shape:llama-1b,q4_0,12"), "256 tokens");
  expect_refused(open_model("shape:llama-1b,q4_0,1e9"), "256 tokens");
  expect_refused(open_model("shape:qwen2.5-0.5b,q4_k,151936"), "rows of 896");
}

}  // namespace
}  // namespace outrider
