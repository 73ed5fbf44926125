// SPDX-License-Identifier: Apache-2.0
// Opens the files of tests/data/formats, which the reference implementations wrote
// (tools/make_format_goldens.py).
#include "formats/model_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "formats/model_tensors.h"
#include "formats/test_outcome.h"
#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

const fs::path kGoldens = OUTRIDER_SOURCE_DIR "/tests/data/formats";

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string_view bytes_of(const TensorView& view) {
  return {reinterpret_cast<const char*>(view.data), static_cast<size_t>(view.bytes())};
}

void expect_same_tensors(const ModelFile& a, const ModelFile& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const auto& [name, view] : a.tensors) {
    SCOPED_TRACE(name);
    const TensorView& other = b.tensors.at(name);
    EXPECT_EQ(view.dtype, other.dtype);
    ASSERT_EQ(view.shape, other.shape);
    EXPECT_TRUE(bytes_of(view) == bytes_of(other));
  }
}

void expect_same_config(const ModelConfig& a, const ModelConfig& b) {
  EXPECT_EQ(a.family, b.family);
  EXPECT_EQ(a.vocab_size, b.vocab_size);
  EXPECT_EQ(a.hidden_size, b.hidden_size);
  EXPECT_EQ(a.layer_count, b.layer_count);
  EXPECT_EQ(a.head_count, b.head_count);
  EXPECT_EQ(a.kv_head_count, b.kv_head_count);
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_EQ(a.ffn_size, b.ffn_size);
  EXPECT_EQ(a.max_context, b.max_context);
  EXPECT_EQ(a.norm.epsilon, b.norm.epsilon);
  EXPECT_EQ(a.ropes.front().theta, b.ropes.front().theta);
  EXPECT_EQ(a.ropes.front().scaling.kind, b.ropes.front().scaling.kind);
  EXPECT_EQ(a.tied_embeddings, b.tied_embeddings);
  EXPECT_EQ(a.qkv_bias, b.qkv_bias);
  EXPECT_EQ(a.qk_norm, b.qk_norm);
}

class FamilyTest : public testing::TestWithParam<const char*> {};

TEST_P(FamilyTest, DirectoryAndGgufAreOneModel) {
  const std::string family = GetParam();
  const auto directory = open_model(kGoldens / family);
  ASSERT_TRUE(directory.ok()) << directory.error().message;
  const auto gguf = open_model(kGoldens / (family + ".gguf"));
  ASSERT_TRUE(gguf.ok()) << gguf.error().message;
  expect_same_tensors(*directory, *gguf);
  expect_same_config(directory->config, gguf->config);
  EXPECT_EQ(directory->tensors.size(), expected_tensors(directory->config).size());
  EXPECT_EQ(directory->format, "safetensors");
  EXPECT_EQ(gguf->format, "gguf");
  EXPECT_EQ(directory->config.stop_tokens, (std::vector<TokenId>{261, 260}));
  EXPECT_EQ(gguf->config.stop_tokens, std::vector<TokenId>{261});
  for (const ModelFile* model : {&*directory, &*gguf}) {
    EXPECT_EQ(model->chat_template, "{{ messages[0].content }}");
    EXPECT_EQ(model->bos_token, "<s>");
    EXPECT_EQ(model->eos_token, "</s>");
    EXPECT_EQ(model->tokenizer.pieces.size(), 262u);
  }
  EXPECT_EQ(gguf->metadata.at("general.name"), "tiny " + family);
  EXPECT_EQ(gguf->metadata.at("tokenizer.ggml.tokens"), "array of 262 string");
  EXPECT_EQ(directory->metadata.at("model_type"), family);
  EXPECT_EQ(directory->metadata.at("hidden_size"), "8");
}

TEST_P(FamilyTest, BothTokenizersAgree) {
  const std::string family = GetParam();
  auto from_directory = open_model(kGoldens / family);
  auto from_gguf = open_model(kGoldens / (family + ".gguf"));
  ASSERT_TRUE(from_directory.ok() && from_gguf.ok());
  const auto a = Tokenizer::create(from_directory->tokenizer);
  const auto b = Tokenizer::create(from_gguf->tokenizer);
  ASSERT_TRUE(a.ok()) << a.error().message;
  ASSERT_TRUE(b.ok()) << b.error().message;
  const std::string text = "the inn, a bath</s> in the \xc3\xa9\xe2\x82\xac";
  const EncodeOptions plain{.add_special = false};
  EXPECT_EQ((*a)->encode(text, plain), (*b)->encode(text, plain));
  EXPECT_EQ((*a)->decode((*a)->encode(text, plain), false), text);
}

INSTANTIATE_TEST_SUITE_P(Goldens, FamilyTest, testing::Values("llama", "qwen2", "qwen3"));

TEST(ModelFileTest, TraitsOfTheFamilies) {
  const auto llama = open_model(kGoldens / "llama");
  const auto qwen2 = open_model(kGoldens / "qwen2");
  const auto qwen3 = open_model(kGoldens / "qwen3");
  ASSERT_TRUE(llama.ok() && qwen2.ok() && qwen3.ok());
  EXPECT_EQ(llama->tensors.at("lm_head.weight").dtype, DType::kBF16);
  EXPECT_EQ(llama->config.ropes.front().scaling.kind, RopeScalingKind::kLlama3);
  EXPECT_TRUE(qwen2->config.tied_embeddings);
  EXPECT_FALSE(qwen2->tensors.contains("lm_head.weight"));
  EXPECT_EQ(qwen2->tensors.at("model.layers.1.self_attn.k_proj.bias").shape, (Shape{4}));
  EXPECT_EQ(qwen3->tensors.at("model.layers.1.self_attn.q_norm.weight").shape, (Shape{6}));
}

TEST(ModelFileTest, GgufCarriesLlama3Divisors) {
  const auto model = open_model(kGoldens / "llama.gguf");
  ASSERT_TRUE(model.ok());
  // Wavelength 2 pi (< 64 / 4) is kept; wavelength 2 pi sqrt(500000) (> 64) is divided by the factor.
  EXPECT_EQ(model->config.ropes.front().scaling.frequency_divisors, (std::vector<float>{1.0f, 8.0f}));
}

TEST(ModelFileTest, ShardsAreOneModelWhicheverIsGiven) {
  const auto whole = open_model(kGoldens / "llama.gguf");
  ASSERT_TRUE(whole.ok());
  for (const char* name : {"split-00001-of-00003.gguf", "split-00003-of-00003.gguf"}) {
    const auto sharded = open_model(kGoldens / name);
    ASSERT_TRUE(sharded.ok()) << sharded.error().message;
    expect_same_tensors(*whole, *sharded);
  }
}

TEST(ModelFileTest, ShardsMustBeAllThereAndInOrder) {
  const TemporaryDirectory directory;
  const auto copy = [&](const char* from, const char* to) {
    fs::copy_file(kGoldens / from, directory.path() / to, fs::copy_options::overwrite_existing);
  };
  copy("split-00001-of-00003.gguf", "split-00001-of-00003.gguf");
  copy("split-00002-of-00003.gguf", "split-00002-of-00003.gguf");
  const fs::path first = directory.path() / "split-00001-of-00003.gguf";
  expect_refused(open_model(first), "split-00003-of-00003.gguf");
  copy("split-00002-of-00003.gguf", "split-00003-of-00003.gguf");
  expect_refused(open_model(first), "calls itself shard 2 of 3");
}

TEST(ModelFileTest, BlockTypesAreCarriedByteForByte) {
  const auto model = open_model(kGoldens / "quantized.gguf");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const std::string layer = "model.layers.0.";
  EXPECT_EQ(model->tensors.at("model.embed_tokens.weight").dtype, DType::kQ4_0);
  EXPECT_EQ(model->tensors.at(layer + "self_attn.k_proj.weight").dtype, DType::kQ5_K);
  EXPECT_EQ(model->tensors.at(layer + "self_attn.v_proj.weight").dtype, DType::kQ6_K);
  EXPECT_EQ(model->tensors.at(layer + "mlp.up_proj.weight").dtype, DType::kF16);
  EXPECT_EQ(model->tensors.at(layer + "mlp.down_proj.weight").dtype, DType::kQ8_0);
  const TensorView& q_proj = model->tensors.at(layer + "self_attn.q_proj.weight");
  EXPECT_EQ(q_proj.dtype, DType::kQ4_K);
  EXPECT_TRUE(bytes_of(q_proj) == contents(kGoldens / "quantized_q_proj.bin"));
}

TEST(ModelFileTest, ViewsOutliveTheMove) {
  auto opened = open_model(kGoldens / "qwen2");
  ASSERT_TRUE(opened.ok());
  const std::string before(bytes_of(opened->tensors.at("model.norm.weight")));
  const ModelFile moved = std::move(opened).value();
  EXPECT_EQ(bytes_of(moved.tensors.at("model.norm.weight")), before);
}

}  // namespace
}  // namespace outrider
