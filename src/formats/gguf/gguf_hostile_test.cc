// SPDX-License-Identifier: Apache-2.0
// Every wrong GGUF file must give a typed error of one line. Each case spoils one thing in the smallest valid
// model.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_config.h"
#include "formats/gguf/gguf_tokenizer.h"
#include "formats/gguf/test_gguf.h"
#include "formats/model_file.h"
#include "formats/test_outcome.h"
#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

using namespace testing_gguf;  // NOLINT: helpers of this test

struct HostileCase {
  std::string name;
  std::function<void(File&)> spoil;
  std::string part_of_message;
};

std::span<const std::byte> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::vector<HostileCase> header_cases() {
  constexpr uint64_t kMax = ~uint64_t{0};
  return {
      {"wrong magic", [](File& f) { f.magic = "GGML"; }, "not a GGUF file"},
      {"lower-case magic", [](File& f) { f.magic = "gguf"; }, "not a GGUF file"},
      {"version 0", [](File& f) { f.version = 0; }, "version 0 is not supported"},
      {"version 1", [](File& f) { f.version = 1; }, "version 1 is not supported"},
      {"version 4", [](File& f) { f.version = 4; }, "version 4 is not supported"},
      {"version 2^32-1", [](File& f) { f.version = ~0u; }, "is not supported"},
      {"big-endian", [](File& f) { f.version = 3u << 24; }, "big-endian"},
      {"2^64-1 tensors", [=](File& f) { f.tensor_count = kMax; }, "more than fit the file"},
      {"2^63 tensors", [](File& f) { f.tensor_count = uint64_t{1} << 63; }, "more than fit the file"},
      {"65537 tensors", [](File& f) { f.tensor_count = 65537; }, "more than fit the file"},
      {"one tensor more", [](File& f) { f.tensor_count = f.tensors.size() + 1; }, "name is empty"},
      {"2^64-1 keys", [=](File& f) { f.key_count = kMax; }, "more than fit the file"},
      {"65537 keys", [](File& f) { f.key_count = 65537; }, "more than fit the file"},
      {"one key more", [](File& f) { f.key_count = f.keys.size() + 1; }, "a tensor's name"},
      {"one key less", [](File& f) { f.key_count = f.keys.size() - 1; }, "has a dimension of"},
      {"no keys", [](File& f) { f.key_count = 0; }, "1 to 4 dimensions"},
  };
}

std::vector<HostileCase> value_cases() {
  return {
      {"empty key", [](File& f) { f.keys.emplace_back("", u32(1)); }, "key is empty"},
      {"key beyond 64 KiB", [](File& f) { f.keys.emplace_back(std::string(65537, 'k'), u32(1)); },
       "metadata key"},
      {"duplicate key", [](File& f) { f.keys.push_back(f.keys[1]); }, "appears twice"},
      {"control bytes in a key",
       [](File& f) {
         f.keys.emplace_back("a\nb\x1b[31m", u32(1));
         f.keys.push_back(f.keys.back());
       },
       "a\\x0ab\\x1b[31m"},
      {"value type 13", [](File& f) { f.key("x").type = 13; }, "unknown type 13"},
      {"value type 2^32-1", [](File& f) { f.key("x").type = ~0u; }, "unknown type"},
      {"bool of 2", [](File& f) { f.key("x") = boolean(2); }, "neither 0 nor 1"},
      {"array of bools of 255", [](File& f) { f.key("x") = array(kBool, 2, "\x01\xff"); }, "neither 0 nor 1"},
      {"array element type 99", [](File& f) { f.key("x") = array(99, 0, ""); }, "unknown element type 99"},
      {"array of arrays", [](File& f) { f.key("x") = array(kArray, 1, raw(kU8) + raw(uint64_t{0})); },
       "holds arrays"},
      {"array count 2^64-1", [](File& f) { f.key("x") = array(kU32, ~uint64_t{0}, ""); },
       "more than the file holds"},
      {"array bytes wrap to 0", [](File& f) { f.key("x") = array(kU64, uint64_t{1} << 61, ""); },
       "more than the file holds"},
      {"array of 2^61 strings", [](File& f) { f.key("x") = array(kString, uint64_t{1} << 61, ""); },
       "more than the file holds"},
      {"array longer than the file", [](File& f) { f.key("x") = array(kU8, 1 << 20, "abc"); },
       "more than the file holds"},
      {"string in an array longer than the file",
       [](File& f) { f.key("x") = array(kString, 1, raw(uint64_t{1} << 40)); }, "the array 'x'"},
      {"string of 2^64-1",
       [](File& f) {
         f.key("x") = {kString, raw(~uint64_t{0}), {}};
       },
       "the value of 'x'"},
      {"string of 2^63",
       [](File& f) {
         f.key("x") = {kString, raw(uint64_t{1} << 63), {}};
       },
       "the value of 'x'"},
      {"string longer than the file",
       [](File& f) {
         f.key("x") = {kString, raw(uint64_t{100000}), {}};
       },
       "the value of 'x'"},
  };
}

std::vector<HostileCase> alignment_cases() {
  return {
      {"alignment 0", [](File& f) { f.key("general.alignment") = u32(0); }, "power of two"},
      {"alignment 13", [](File& f) { f.key("general.alignment") = u32(13); }, "power of two"},
      {"alignment 2^31", [](File& f) { f.key("general.alignment") = u32(1u << 31); }, "power of two"},
      {"alignment 2^21", [](File& f) { f.key("general.alignment") = u32(1u << 21); }, "power of two"},
      {"alignment 2^63", [](File& f) { f.key("general.alignment") = u64(uint64_t{1} << 63); },
       "power of two"},
      {"alignment -32", [](File& f) { f.key("general.alignment") = i32(-32); }, "power of two"},
      {"alignment as text", [](File& f) { f.key("general.alignment") = text("32"); }, "power of two"},
      {"alignment not kept", [](File& f) { f.key("general.alignment") = u32(4096); }, "not aligned to 4096"},
  };
}

constexpr const char* kQ = "blk.0.attn_q.weight";

std::vector<HostileCase> dimension_cases() {
  return {
      {"empty name", [](File& f) { f.tensor(kQ).name = ""; }, "name is empty"},
      {"duplicate name", [](File& f) { f.tensors.push_back(f.tensors.back()); }, "appears twice"},
      {"name beyond 64 KiB", [](File& f) { f.tensor(kQ).name.assign(65537, 'n'); }, "a tensor's name"},
      {"no dimensions", [](File& f) { f.tensor(kQ).dimensions = {}; }, "1 to 4 dimensions"},
      {"5 dimensions",
       [](File& f) {
         f.tensor(kQ).dimensions = {4, 4, 1, 1, 1};
       },
       "1 to 4 dimensions"},
      {"2^32-1 dimensions", [](File& f) { f.tensor(kQ).rank = ~0u; }, "1 to 4 dimensions"},
      {"dimension 0",
       [](File& f) {
         f.tensor(kQ).dimensions = {4, 0};
       },
       "dimension of 0"},
      {"dimension 2^40+1",
       [](File& f) {
         f.tensor(kQ).dimensions = {4, (uint64_t{1} << 40) + 1};
       },
       "outside 1 to"},
      {"dimension 2^42+1", [](File& f) { f.tensor(kQ).dimensions = {(uint64_t{1} << 42) + 1}; },
       "outside 1 to"},
      {"dimension 2^64-1", [](File& f) { f.tensor(kQ).dimensions = {~uint64_t{0}}; }, "outside 1 to"},
      {"dimension -2^63", [](File& f) { f.tensor(kQ).dimensions = {uint64_t{1} << 63}; }, "outside 1 to"},
      {"product wraps to 0",
       [](File& f) {
         f.tensor(kQ).dimensions = {uint64_t{1} << 32, uint64_t{1} << 30};
       },
       "larger than any file"},
      {"product wraps in 4 dimensions",
       [](File& f) {
         f.tensor(kQ).dimensions = {uint64_t{1} << 40, uint64_t{1} << 40, uint64_t{1} << 40,
                                    uint64_t{1} << 40};
       },
       "larger than any file"},
      {"larger than the file",
       [](File& f) {
         f.tensor(kQ).dimensions = {4, 1 << 20};
       },
       "ends beyond the file"},
  };
}

std::vector<HostileCase> tensor_cases() {
  return {
      {"type Q8_1", [](File& f) { f.tensor(kQ).type = 9; }, "Q8_1, which is not supported; F32, F16"},
      {"type Q8_K", [](File& f) { f.tensor(kQ).type = 15; }, "Q8_K"},
      {"type Q1_0", [](File& f) { f.tensor(kQ).type = 41; }, "Q1_0"},
      {"removed type 31", [](File& f) { f.tensor(kQ).type = 31; }, "number 31"},
      {"type beyond the last", [](File& f) { f.tensor(kQ).type = 42; }, "number 42"},
      {"type I32", [](File& f) { f.tensor(kQ).type = 26; }, "I32"},
      {"removed type 4", [](File& f) { f.tensor(kQ).type = 4; }, "number 4"},
      {"type 2^32-1", [](File& f) { f.tensor(kQ).type = ~0u; }, "number 4294967295"},
      {"rows that are no blocks", [](File& f) { f.tensor(kQ).type = 8; }, "not a multiple of the 32"},
      {"rows that are no super-blocks", [](File& f) { f.tensor(kQ).type = 12; }, "not a multiple of the 256"},
      {"misaligned", [](File& f) { f.tensor(kQ).offset = 4; }, "not aligned"},
      {"two at one place", [](File& f) { f.tensor(kQ).offset = 0; }, "overlaps"},
      {"partly overlapping", [](File& f) { f.tensor(kQ).offset = 64; }, "overlaps"},
      {"offset after the file", [](File& f) { f.tensor(kQ).offset = 1 << 20; }, "ends beyond the file"},
      {"offset + size wraps", [](File& f) { f.tensor(kQ).offset = ~uint64_t{0} - 31; },
       "ends beyond the file"},
      {"offset 2^63", [](File& f) { f.tensor(kQ).offset = uint64_t{1} << 63; }, "ends beyond the file"},
      {"missing", [](File& f) { f.erase_tensor(kQ); }, "tensor blk.0.attn_q.weight is missing"},
      {"transposed",
       [](File& f) {
         f.tensor("token_embd.weight").dimensions = {5, 4};
       },
       "must have shape"},
      {"wrong rank", [](File& f) { f.tensor(kQ).dimensions = {16}; }, "must have shape [4, 4]"},
      {"norm of another size", [](File& f) { f.tensor("output_norm.weight").dimensions = {2}; },
       "must have shape [4]"},
      {"no embedding", [](File& f) { f.erase_tensor("token_embd.weight"); }, "token_embd.weight is missing"},
      {"no tensors", [](File& f) { f.tensors.clear(); }, "token_embd.weight is missing"},
      {"rope_freqs of f16",
       [](File& f) { f.tensor("rope_freqs.weight") = {"rope_freqs.weight", {2}, 1, 4, {}, {}}; },
       "rope_freqs.weight must be one row of f32"},
      {"too many rope_freqs",
       [](File& f) { f.tensor("rope_freqs.weight") = {"rope_freqs.weight", {3}, 0, 12, {}, {}}; },
       "expected 2 RoPE frequency divisors"},
  };
}

std::vector<HostileCase> config_cases() {
  return {
      {"no architecture", [](File& f) { f.erase_key("general.architecture"); },
       "general.architecture is missing"},
      {"architecture mamba", [](File& f) { f.key("general.architecture") = text("mamba"); },
       "'mamba' is not supported; llama, qwen2, "},
      {"architecture as a number", [](File& f) { f.key("general.architecture") = u32(1); },
       "must be a string"},
      {"architecture as an array", [](File& f) { f.key("general.architecture") = strings({"llama"}); },
       "must be a string"},
      {"no layers", [](File& f) { f.key("llama.block_count") = u32(0); }, "number of layers"},
      {"513 layers", [](File& f) { f.key("llama.block_count") = u32(513); }, "is missing"},
      {"1025 layers", [](File& f) { f.key("llama.block_count") = u32(1025); }, "number of layers"},
      {"100000 layers", [](File& f) { f.key("llama.block_count") = u32(100000); }, "number of layers"},
      {"2^64-1 layers", [](File& f) { f.key("llama.block_count") = u64(~uint64_t{0}); },
       "must be an integer"},
      {"-1 layers", [](File& f) { f.key("llama.block_count") = i32(-1); }, "number of layers"},
      {"layers as f32", [](File& f) { f.key("llama.block_count") = f32(1.0f); }, "must be an integer"},
      {"no block_count", [](File& f) { f.erase_key("llama.block_count"); }, "llama.block_count is missing"},
      {"no context", [](File& f) { f.key("llama.context_length") = u32(0); }, "context length"},
      {"0 heads", [](File& f) { f.key("llama.attention.head_count") = u32(0); }, "must be positive"},
      {"heads per layer", [](File& f) { f.key("llama.attention.head_count") = numbers<int32_t>(kI32, {1}); },
       "must be an integer"},
      {"3 heads in 4", [](File& f) { f.key("llama.attention.head_count") = u32(3); }, "head size"},
      {"uneven kv heads", [](File& f) { f.key("llama.attention.head_count_kv") = u32(2); },
       "key-value heads"},
      {"0 kv heads", [](File& f) { f.key("llama.attention.head_count_kv") = u32(0); }, "must be positive"},
      {"odd head size", [](File& f) { f.key("llama.attention.key_length") = u32(3); }, "must be even"},
      {"head size 2^31", [](File& f) { f.key("llama.attention.key_length") = u32(1u << 31); },
       "head size must be from 2"},
      {"values of another size", [](File& f) { f.key("llama.attention.value_length") = u32(2); },
       "same head size"},
      {"more rotated than there is", [](File& f) { f.key("llama.rope.dimension_count") = u32(2000); },
       "the rotated part of a head"},
      {"odd part rotated", [](File& f) { f.key("llama.rope.dimension_count") = u32(3); },
       "rotated part of a head must be even"},
  };
}

std::vector<HostileCase> layer_cases() {
  return {
      {"experts that are not used", [](File& f) { f.key("llama.expert_count") = u32(8); },
       "llama.expert_used_count is missing"},
      {"experts without tensors",
       [](File& f) {
         f.key("llama.expert_count") = u32(8);
         f.key("llama.expert_used_count") = u32(2);
       },
       "ffn_down_exps.weight [experts, hidden size, feed-forward size] is missing"},
      {"epsilon NaN",
       [](File& f) {
         f.key("llama.attention.layer_norm_rms_epsilon") = f32(std::numeric_limits<float>::quiet_NaN());
       },
       "epsilon"},
      {"epsilon 0", [](File& f) { f.key("llama.attention.layer_norm_rms_epsilon") = f32(0.0f); }, "epsilon"},
      {"epsilon missing", [](File& f) { f.erase_key("llama.attention.layer_norm_rms_epsilon"); },
       "is missing"},
      {"rope base -1", [](File& f) { f.key("llama.rope.freq_base") = f32(-1.0f); }, "RoPE base"},
      {"rope scaling ntk", [](File& f) { f.key("llama.rope.scaling.type") = text("ntk"); },
       "RoPE scaling 'ntk' is not supported"},
      {"yarn without a factor", [](File& f) { f.key("llama.rope.scaling.type") = text("yarn"); },
       "rope.scaling.factor is missing"},
      {"linear without a factor", [](File& f) { f.key("llama.rope.scaling.type") = text("linear"); },
       "rope.scaling.factor is missing"},
      {"rope factor -1", [](File& f) { f.key("llama.rope.scale_linear") = f32(-1.0f); }, "RoPE factor"},
      {"window 2^31", [](File& f) { f.key("llama.attention.sliding_window") = u32(1u << 31); },
       "sliding window"},
      {"split.no 3 of 2",
       [](File& f) {
         f.key("split.count") = u32(2);
         f.key("split.no") = u32(3);
       },
       "makes no sense"},
      {"split.count 65535", [](File& f) { f.key("split.count") = u32(65535); }, "makes no sense"},
      {"shards under another name", [](File& f) { f.key("split.count") = u32(2); }, "must be named"},
  };
}

// Lists with an entry for each layer, and the parts that some layers have.
std::vector<HostileCase> layer_list_cases() {
  return {
      {"kv heads of two layers",
       [](File& f) {
         f.key("llama.attention.head_count_kv") = numbers<int32_t>(kI32, {1, 1});
       },
       "must have an entry for each of 1 layers, found 2"},
      {"a layer without kv heads",
       [](File& f) { f.key("llama.attention.head_count_kv") = numbers<int32_t>(kI32, {0}); },
       "must be positive, found 0"},
      {"feed-forward sizes of no layer",
       [](File& f) { f.key("llama.feed_forward_length") = numbers<int32_t>(kI32, {}); },
       "llama.feed_forward_length is missing"},
      {"windows of two layers",
       [](File& f) {
         f.key("llama.attention.sliding_window_pattern") = array(kBool, 2, {"\0\1", 2});
       },
       "must have an entry for each of 1 layers, found 2"},
      {"windows as numbers",
       [](File& f) { f.key("llama.attention.sliding_window_pattern") = numbers<int32_t>(kI32, {1}); },
       "must be an array of bools"},
      {"layer inputs without a table",
       [](File& f) { f.key("llama.embedding_length_per_layer_input") = u32(4); },
       "per_layer_token_embd.weight is missing"},
  };
}

std::vector<HostileCase> tokenizer_cases() {
  return {
      {"no tokenizer", [](File& f) { f.erase_key("tokenizer.ggml.model"); }, "the file has no tokenizer"},
      {"tokenizer bert", [](File& f) { f.key("tokenizer.ggml.model") = text("bert"); },
       "tokenizer model 'bert' is not supported; gpt2"},
      {"no tokens", [](File& f) { f.key("tokenizer.ggml.tokens") = strings({}); }, "found 0"},
      {"tokens missing", [](File& f) { f.erase_key("tokenizer.ggml.tokens"); }, "tokens is missing"},
      {"tokens as numbers", [](File& f) { f.key("tokenizer.ggml.tokens") = numbers<int32_t>(kI32, {1}); },
       "array of strings"},
      {"more tokens than rows",
       [](File& f) {
         f.key("tokenizer.ggml.tokens") = strings({"a", "b", "c", "d", "e", "f"});
         f.key("tokenizer.ggml.scores") = numbers<float>(kF32, {0, 0, 0, 0, 0, 0});
         f.erase_key("tokenizer.ggml.token_type");
       },
       "the tokenizer has 6 tokens, the model only 5"},
      {"scores too short", [](File& f) { f.key("tokenizer.ggml.scores") = numbers<float>(kF32, {0}); },
       "one entry per"},
      {"scores of another type",
       [](File& f) {
         f.key("tokenizer.ggml.scores") = numbers<int32_t>(kI32, {0, 0, 0, 0, 0});
       },
       "array of f32"},
      {"types too short", [](File& f) { f.key("tokenizer.ggml.token_type") = numbers<int32_t>(kI32, {1}); },
       "one entry per"},
      {"unknown token type",
       [](File& f) {
         f.key("tokenizer.ggml.token_type") = numbers<int32_t>(kI32, {1, 1, 1, 1, 7});
       },
       "token 4 has the unknown type 7"},
      {"negative token type",
       [](File& f) {
         f.key("tokenizer.ggml.token_type") = numbers<int32_t>(kI32, {-1, 1, 1, 1, 1});
       },
       "token 0 has the unknown type -1"},
  };
}

std::vector<HostileCase> special_token_cases() {
  return {
      {"add_bos as u32", [](File& f) { f.key("tokenizer.ggml.add_bos_token") = u32(1); }, "must be a bool"},
  };
}

std::vector<HostileCase> byte_level_cases() {
  const auto byte_level = [](File& f, const char* pre) {
    f.key("tokenizer.ggml.model") = text("gpt2");
    f.key("tokenizer.ggml.pre") = text(pre);
  };
  return {
      {"unknown pre-tokenizer", [=](File& f) { byte_level(f, "nobody"); }, "nobody"},
      {"no merges", [=](File& f) { byte_level(f, "gpt-2"); }, "merges is missing"},
      {"merge of one piece",
       [=](File& f) {
         byte_level(f, "gpt-2");
         f.key("tokenizer.ggml.merges") = strings({"ab"});
       },
       "must be two pieces"},
      {"empty merge",
       [=](File& f) {
         byte_level(f, "gpt-2");
         f.key("tokenizer.ggml.merges") = strings({""});
       },
       "must be two pieces"},
  };
}

TEST(GgufHostileTest, TheUnspoiledFileOpens) {
  const TemporaryDirectory directory;
  const auto model = open_model(directory.write("model.gguf", tiny_model().serialize().bytes));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->config.vocab_size, 5);
  EXPECT_EQ(model->config.stop_tokens, std::vector<TokenId>{2});
  EXPECT_TRUE(model->config.tied_embeddings);
}

TEST(GgufHostileTest, LayersDifferAsTheFileSays) {
  const TemporaryDirectory directory;
  const auto model = open_model(directory.write("model.gguf", tiny_gemma4().serialize().bytes));
  ASSERT_TRUE(model.ok()) << model.error().message;
  const ModelConfig& config = model->config;
  const LayerTraits& first = config.traits_of(0);
  const LayerTraits& second = config.traits_of(1);
  EXPECT_EQ(first.window, 3);
  EXPECT_EQ(second.window, 0);
  EXPECT_EQ(config.sizes_of(0).head_dim, 2);
  EXPECT_EQ(config.sizes_of(1).head_dim, 4);
  EXPECT_EQ(config.sizes_of(0).ffn_size, 4);
  EXPECT_EQ(config.sizes_of(1).ffn_size, 8);
  EXPECT_FALSE(first.values_are_keys);
  EXPECT_TRUE(second.values_are_keys);
  EXPECT_EQ(first.rope, 1);
  EXPECT_EQ(second.rope, 0);
  EXPECT_EQ(config.layer_inputs.size, 2);
}

TEST(GgufHostileTest, EndsOfTurnsAreKnownByTheirSpelling) {
  const TemporaryDirectory directory;
  for (const char* piece : {"<|im_end|>", "<|end|>", "<end_of_turn>", "<turn|>"}) {
    File file = tiny_model();
    file.key("tokenizer.ggml.tokens") = strings({"<unk>", piece, "</s>", "a", "b"});
    const auto model = open_model(directory.write("model.gguf", file.serialize().bytes));
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ(model->config.stop_tokens, (std::vector<TokenId>{1, 2})) << piece;
  }
}

// Older converters wrote -1 and ids past the end for tokens that a model does not have.
TEST(GgufHostileTest, SpecialTokensOutsideTheVocabularyAreNone) {
  const TemporaryDirectory directory;
  const auto open = [&](const char* key, const Value& value) {
    File file = tiny_model();
    file.key(key) = value;
    testing::internal::CaptureStderr();
    auto model = open_model(directory.write("model.gguf", file.serialize().bytes));
    const std::string warning = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
    EXPECT_NE(warning.find(key), std::string::npos) << warning;
    EXPECT_TRUE(model.ok()) << model.error().message;
    return model;
  };
  for (const Value& outside : {u32(5), u32(~0u), i32(-1)}) {
    EXPECT_FALSE(open("tokenizer.ggml.padding_token_id", outside)->tokenizer.pad);
    EXPECT_FALSE(open("tokenizer.ggml.unknown_token_id", outside)->tokenizer.unknown);
    EXPECT_EQ(open("tokenizer.ggml.eot_token_id", outside)->config.stop_tokens, std::vector<TokenId>{2});
    const auto without_bos = open("tokenizer.ggml.bos_token_id", outside);
    EXPECT_TRUE(Tokenizer::create(without_bos->tokenizer).ok());
    EXPECT_FALSE(without_bos->tokenizer.add_bos);
    EXPECT_TRUE(open("tokenizer.ggml.eos_token_id", outside)->config.stop_tokens.empty());
    for (const char* key : {"seperator", "cls", "mask"}) {
      const std::string name = std::string("tokenizer.ggml.") + key + "_token_id";
      EXPECT_TRUE(open(name.c_str(), outside)->tokenizer.template_tokens.empty()) << name;
    }
    EXPECT_EQ(open("tokenizer.ggml.eom_token_id", outside)->config.stop_tokens, std::vector<TokenId>{2});
  }
}

TEST(GgufHostileTest, TemplatesGetTheSpecialTokens) {
  const TemporaryDirectory directory;
  File file = tiny_model();
  file.key("tokenizer.ggml.padding_token_id") = u32(3);
  file.key("tokenizer.ggml.unknown_token_id") = u32(0);
  const auto model = open_model(directory.write("model.gguf", file.serialize().bytes));
  ASSERT_TRUE(model.ok()) << model.error().message;
  const std::vector<std::pair<std::string, std::string>> expected = {{"unk_token", "<unk>"},
                                                                     {"pad_token", "a"}};
  EXPECT_EQ(model->tokenizer.template_tokens, expected);
}

TEST(GgufHostileTest, ATemplateThatIsNoTextBlocksNothingElse) {
  const TemporaryDirectory directory;
  File file = tiny_model();
  file.key("tokenizer.chat_template") = boolean(1);
  const auto model = open_model(directory.write("model.gguf", file.serialize().bytes));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_NE(model->chat_template_problem.find("must be a string"), std::string::npos);
}

TEST(GgufHostileTest, ALinearFactorOfZeroIsNone) {
  const TemporaryDirectory directory;
  for (const char* key : {"llama.rope.scale_linear", "llama.rope.scaling.factor"}) {
    File file = tiny_model();
    file.key(key) = f32(0.0f);
    if (std::string_view(key).ends_with("factor")) file.key("llama.rope.scaling.type") = text("linear");
    const auto model = open_model(directory.write("model.gguf", file.serialize().bytes));
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ(model->config.ropes.front().scaling.kind, RopeScalingKind::kNone);
  }
}

TEST(GgufHostileTest, NamedKinds) {
  const TemporaryDirectory directory;
  size_t count = 0;
  for (const auto& cases :
       {header_cases(), value_cases(), alignment_cases(), dimension_cases(), tensor_cases(), config_cases(),
        layer_cases(), layer_list_cases(), tokenizer_cases(), special_token_cases(), byte_level_cases()}) {
    for (const HostileCase& hostile : cases) {
      SCOPED_TRACE(hostile.name);
      File file = tiny_model();
      hostile.spoil(file);
      expect_refused(open_model(directory.write("model.gguf", file.serialize().bytes)),
                     hostile.part_of_message);
      ++count;
    }
  }
  EXPECT_GE(count, 80u);
}

TEST(GgufHostileTest, CutAtEveryByte) {
  const TemporaryDirectory directory;
  for (const File& file : {tiny_model(), tiny_gemma4()}) {
    const std::string bytes = file.serialize().bytes;
    ASSERT_LE(bytes.size(), 8192u);
    for (size_t size = 0; size < bytes.size(); ++size) {
      SCOPED_TRACE(size);
      expect_refused(open_model(directory.write("model.gguf", bytes.substr(0, size))), "");
    }
  }
}

TEST(GgufHostileTest, EdgeValuesInEveryU64) {
  const TemporaryDirectory directory;
  const uint64_t edges[] = {0,
                            1,
                            (uint64_t{1} << 31) - 1,
                            uint64_t{1} << 31,
                            (uint64_t{1} << 32) - 1,
                            uint64_t{1} << 32,
                            (uint64_t{1} << 42) + 1,
                            uint64_t{1} << 62,
                            (uint64_t{1} << 63) - 1,
                            uint64_t{1} << 63,
                            ~uint64_t{0} - 1,
                            ~uint64_t{0}};
  for (const File& file : {tiny_model(), tiny_gemma4()}) {
    const Serialized valid = file.serialize();
    for (const size_t offset : valid.u64_offsets) {
      for (const uint64_t edge : edges) {
        SCOPED_TRACE(std::to_string(offset) + " = " + std::to_string(edge));
        std::string bytes = valid.bytes;
        bytes.replace(offset, sizeof(edge), raw(edge));
        expect_refused_or_valid(open_model(directory.write("model.gguf", bytes)));
      }
    }
  }
}

// The configuration that the bytes of a file describe.
Result<ModelConfig> config_of(const std::string& bytes) {
  OUTRIDER_TRY(const GgufFile file, parse_gguf(as_bytes(bytes), "model.gguf"));
  OUTRIDER_TRY(const TokenizerSpec tokenizer, gguf_tokenizer_spec(file, "model.gguf"));
  return gguf_model_config(file, tokenizer, "model.gguf");
}

TEST(GgufHostileTest, EveryByteFlipped) {
  for (const File& file : {tiny_model(), tiny_gemma4()}) {
    const std::string valid = file.serialize().bytes;
    for (size_t i = 0; i < valid.size(); ++i) {
      for (const char mask : {'\x01', '\x80', '\xff'}) {
        std::string bytes = valid;
        bytes[i] = static_cast<char>(bytes[i] ^ mask);
        expect_refused_or_valid(config_of(bytes));
      }
    }
  }
}

TEST(GgufHostileTest, LimitsHoldAtTheirEdge) {
  File file = tiny_model();
  file.keys.emplace_back(std::string(65536, 'k'), u32(1));
  file.tensors.push_back({std::string(65536, 't'), {1, 1, 1, 1}, 0, 4, {}, {}});
  file.key("general.alignment") = u32(1 << 20);
  file.alignment = 1 << 20;
  const std::string bytes = file.serialize().bytes;
  const auto parsed = parse_gguf(as_bytes(bytes), "model.gguf");
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
}

}  // namespace
}  // namespace outrider
