// SPDX-License-Identifier: Apache-2.0
// Faults of a Hugging Face directory that are refused or repaired.
#include "formats/hf/hf_directory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "formats/hf/hf_chat_template.h"
#include "formats/model_file.h"
#include "formats/test_outcome.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// A copy of a golden directory to spoil.
class HfDirectoryTest : public testing::Test {
 protected:
  void copy(const char* family) {
    fs::copy(fs::path(OUTRIDER_SOURCE_DIR "/tests/data/formats") / family, path(),
             fs::copy_options::recursive);
  }
  const fs::path& path() const { return directory_.path(); }
  void remove(const char* name) { fs::remove(path() / name); }
  void write(const char* name, std::string_view text) { directory_.write(name, text); }
  std::string read(const char* name) const {
    std::ifstream file(path() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void replace(const char* name, const std::string& from, const std::string& to) {
    std::string text = read(name);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write(name, text.replace(at, from.size(), to));
  }

  TemporaryDirectory directory_;
};

TEST_F(HfDirectoryTest, ReadsNumbersBeyond64Bits) {
  copy("qwen2");
  const std::string json = R"({"model_max_length": 1000000000000000019884624838656})";
  write("tokenizer_config.json", json);
  write("generation_config.json", json);
  EXPECT_TRUE(open_model(path()).ok());
}

TEST_F(HfDirectoryTest, MissingFilesAreNamed) {
  expect_refused(open_model(path() / "nothing"), "no such model");
  expect_refused(open_model(path()), "config.json is missing");
  copy("qwen2");
  ASSERT_TRUE(open_model(path()).ok());
  expect_refused(open_model(path() / "model.safetensors"), "give the directory");
  expect_refused(open_model(path() / "tokenizer.json"), "expected a Hugging Face directory or a .gguf file");
  remove("model.safetensors");
  expect_refused(open_model(path()), "expected model.safetensors or pytorch_model.bin");
  write("pytorch_model.bin", "x");
  expect_refused(open_model(path()), "expected a checkpoint of torch.save(), found another file");
  remove("tokenizer.json");
  expect_refused(open_model(path()), "tokenizer.json is missing");
  write("tokenizer.model", "x");
  expect_refused(open_model(path()), "tokenizer.model (SentencePiece) is not supported");
}

TEST_F(HfDirectoryTest, ShardsMustStayInTheDirectory) {
  constexpr const char* kIndex = "model.safetensors.index.json";
  const std::string shard = "\"model-00002-of-00003.safetensors\"";
  for (const char* wrong : {"\"../model.safetensors\"", "\"/etc/passwd\"", "\"a/b.safetensors\"",
                            "\"a\\\\b\"", "\"..\"", "\".\"", "\"\"", "\"a\\u0000b\"", "7", "null", "[]"}) {
    SCOPED_TRACE(wrong);
    fs::remove_all(path());
    copy("llama");
    replace(kIndex, shard, wrong);
    expect_refused(open_model(path()), "must be the name of a file in the same directory");
  }
  fs::remove_all(path());
  copy("llama");
  remove("model-00002-of-00003.safetensors");
  expect_refused(open_model(path()), "shard 'model-00002-of-00003.safetensors' of the index is missing");
  fs::copy(path() / "model-00001-of-00003.safetensors", path() / "model-00002-of-00003.safetensors");
  expect_refused(open_model(path()), "is in two shards");
  write(kIndex, "{}");
  expect_refused(open_model(path()), "'weight_map' is missing");
  write(kIndex, R"({"weight_map":{}})");
  expect_refused(open_model(path()), "tensor model.embed_tokens.weight is missing");
}

// The tensors of the directory by name, as bytes.
std::map<std::string, std::string> tensor_bytes(const fs::path& path) {
  const auto model = open_model(path);
  EXPECT_TRUE(model.ok()) << model.error().message;
  std::map<std::string, std::string> bytes;
  if (!model.ok()) return bytes;
  for (const auto& [name, view] : model->tensors)
    bytes[name] = {reinterpret_cast<const char*>(view.data), static_cast<size_t>(view.bytes())};
  return bytes;
}

TEST_F(HfDirectoryTest, ReadsCheckpointsOfTorch) {
  constexpr const char* kIndex = "pytorch_model.bin.index.json";
  const fs::path file = OUTRIDER_SOURCE_DIR "/tests/data/torch/qwen2.bin";
  copy("qwen2");
  const auto expected = tensor_bytes(path());
  remove("model.safetensors");
  fs::copy(file, path() / "pytorch_model.bin");
  EXPECT_EQ(tensor_bytes(path()), expected);
  EXPECT_EQ(open_model(path())->format, "pytorch");
  remove("pytorch_model.bin");
  fs::copy(file, path() / "pytorch_model-00001-of-00001.bin");
  write(kIndex, R"({"weight_map": {"model.norm.weight": "pytorch_model-00001-of-00001.bin"}})");
  EXPECT_EQ(tensor_bytes(path()), expected);
  write(kIndex, read(kIndex) + std::string(5 << 20, ' '));
  EXPECT_EQ(tensor_bytes(path()), expected);
  write(kIndex, R"({"weight_map": {"model.norm.weight": "pytorch_model-00002-of-00002.bin"}})");
  expect_refused(open_model(path()), "shard 'pytorch_model-00002-of-00002.bin' of the index is missing");
}

// The cache of the Hub holds blobs, and symbolic links to them under the names of a snapshot.
TEST_F(HfDirectoryTest, ReadsASnapshotOfLinks) {
  copy("qwen2");
  const auto expected = tensor_bytes(path());
  const fs::path blobs = path() / "blobs", snapshot = path() / "snapshots" / "0123abcd";
  fs::create_directories(blobs);
  fs::create_directories(snapshot);
  for (const char* name : {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"}) {
    fs::rename(path() / name, blobs / (std::string("sum of ") + name));
    fs::create_symlink(fs::path("../../blobs") / (std::string("sum of ") + name), snapshot / name);
  }
  EXPECT_EQ(tensor_bytes(snapshot), expected);
}

TEST_F(HfDirectoryTest, ConfigurationAndTensorsMustAgree) {
  copy("qwen2");
  replace("config.json", "\"intermediate_size\": 12", "\"intermediate_size\": 13");
  expect_refused(open_model(path()), "must have shape [13, 8] by the model's configuration, found [12, 8]");
  replace("config.json", "\"intermediate_size\": 13", "\"intermediate_size\": 12");
  replace("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
  expect_refused(open_model(path()), "tensor model.layers.2.");
  replace("config.json", "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 2");
  replace("config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
  expect_refused(open_model(path()), "tensor lm_head.weight is missing");
}

TEST_F(HfDirectoryTest, WeightsOfOtherTypesAreRefusedByName) {
  copy("qwen3");
  replace("model.safetensors", "\"F32\"", "\"I32\"");
  expect_refused(open_model(path()), "has dtype I32, which is not supported; F32, F16 and BF16 are");
}

TEST_F(HfDirectoryTest, ModeloptSaysItsQuantizationInAFileOfItsOwn) {
  copy("qwen2");
  write("hf_quant_config.json", R"({"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}})");
  EXPECT_TRUE(open_model(path()).ok());
  write("hf_quant_config.json", R"({"quantization": {"quant_algo": "W4A8_AWQ"}})");
  expect_refused(open_model(path()), "quant_algo 'W4A8_AWQ' is not supported");
  write("hf_quant_config.json", "{}");
  expect_refused(open_model(path()), "quantization is missing");
}

TEST_F(HfDirectoryTest, TokenizerLargerThanTheModelIsRefused) {
  copy("qwen2");
  replace("tokenizer.json", "\"added_tokens\": [",
          "\"added_tokens\": [{\"id\":262,\"content\":\"<x>\",\"single_word\":false,\"lstrip\":false,"
          "\"rstrip\":false,\"normalized\":false,\"special\":true},");
  expect_refused(open_model(path()), "the tokenizer has 263 tokens, the model only 262");
}

// Early writers of the format did not pad their headers, so weights may begin anywhere.
TEST_F(HfDirectoryTest, MisalignedWeightsAreCopied) {
  copy("qwen2");
  const auto aligned = open_model(path());
  ASSERT_TRUE(aligned.ok());
  std::string bytes = read("model.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  bytes.insert(sizeof(length) + length, " ");
  ++length;
  std::memcpy(bytes.data(), &length, sizeof(length));
  write("model.safetensors", bytes);
  const auto misaligned = open_model(path());
  ASSERT_TRUE(misaligned.ok()) << misaligned.error().message;
  for (const auto& [name, view] : aligned->tensors) {
    const TensorView& other = misaligned->tensors.at(name);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(other.data) % sizeof(float), 0u);
    EXPECT_EQ(std::memcmp(view.data, other.data, static_cast<size_t>(view.bytes())), 0) << name;
  }
}

TEST_F(HfDirectoryTest, ChatTemplateSources) {
  EXPECT_EQ(*read_chat_template(path()), "");
  write("tokenizer_config.json", "{}");
  EXPECT_EQ(*read_chat_template(path()), "");
  write("tokenizer_config.json", R"({"chat_template":"text"})");
  EXPECT_EQ(*read_chat_template(path()), "text");
  write("tokenizer_config.json", R"({"chat_template":[{"name":"rag","template":"x"}]})");
  EXPECT_EQ(*read_chat_template(path()), "");
  write("tokenizer_config.json", R"({"chat_template":[{"name":"default"}]})");
  expect_refused(read_chat_template(path()), "must be a string or a list of objects");
  write("tokenizer_config.json", R"({"chat_template":7})");
  expect_refused(read_chat_template(path()), "must be a string");
  write("chat_template.jinja", "from the file");
  EXPECT_EQ(*read_chat_template(path()), "from the file");
  write("chat_template.jinja", std::string((1 << 20) + 1, 'x'));
  expect_refused(read_chat_template(path()), "limit of 1 MiB");
}

}  // namespace
}  // namespace outrider
