// SPDX-License-Identifier: Apache-2.0
// The reading of an adapter's files, and the refusals.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "formats/adapters/adapter_file.h"
#include "models/model_test_data.h"
#include "tests/support/adapter_folder.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

const ModelConfig& llama() {
  static const ModelConfig config = open_model(model_data("llama"))->config;
  return config;
}

// A whole adapter of the model "llama" in a fresh folder.
fs::path whole_adapter(const AdapterShape& shape = {}) {
  const fs::path folder = fs::path(testing::TempDir()) / "adapter_files";
  fs::remove_all(folder);
  write_adapter(folder, llama(), 1, shape);
  return folder;
}

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// Replaces every `from` in a file by `to`, which must be as long unless it is a configuration.
void replace(const fs::path& path, const std::string& from, const std::string& to) {
  std::string text = read(path);
  size_t count = 0;
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size(), ++count)
    text.replace(at, from.size(), to);
  ASSERT_GT(count, 0u) << from;
  write(path, text);
}

void expect_refused(const fs::path& path, const std::string& reason) {
  const auto file = open_adapter(path, llama());
  ASSERT_FALSE(file.ok()) << reason;
  EXPECT_NE(file.error().message.find(reason), std::string::npos) << file.error().message;
  EXPECT_NE(file.error().message.find(path.filename().string()), std::string::npos) << file.error().message;
}

TEST(AdapterFile, HasUpdatesOfAllItsMatrices) {
  const auto file = open_adapter(whole_adapter({.rank = 3, .alpha = 6}), llama());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->format, "peft");
  EXPECT_EQ(file->rank, 3);
  ASSERT_EQ(file->updates.size(), 5u * static_cast<size_t>(llama().layer_count));
  for (const LowRankUpdate& update : file->updates) {
    EXPECT_EQ(update.scale, 2.0F) << update.matrix;
    EXPECT_EQ(update.a.shape[0], 3);
    EXPECT_EQ(update.b.shape[1], 3);
  }
}

TEST(AdapterFile, ScalesFollowItsConfiguration) {
  const fs::path folder = whole_adapter({.rank = 4, .alpha = 8});
  const auto scale_of = [&](const std::string& config, const std::string& matrix) {
    write(folder / "adapter_config.json", R"({"peft_type": "LORA", "r": 4, )" + config + "}");
    const auto file = open_adapter(folder, llama());
    EXPECT_TRUE(file.ok()) << file.error().message;
    for (const LowRankUpdate& update : file->updates)
      if (update.matrix.ends_with(matrix)) return update.scale;
    return NAN;
  };
  EXPECT_EQ(scale_of(R"("lora_alpha": 2)", "q_proj"), 0.5F);
  EXPECT_EQ(scale_of(R"("lora_alpha": 2, "use_rslora": true)", "q_proj"), 1.0F);
  EXPECT_EQ(scale_of(R"("lora_alpha": 2, "alpha_pattern": {"q_proj": 12})", "q_proj"), 3.0F);
  EXPECT_EQ(scale_of(R"("lora_alpha": 2, "alpha_pattern": {"q_proj": 12})", "v_proj"), 0.5F);
  EXPECT_EQ(scale_of(R"("lora_alpha": 2, "alpha_pattern": {"^model.layers.0.self_attn.v_proj": 4})",
                     "0.self_attn.v_proj"),
            1.0F);
  EXPECT_EQ(scale_of(R"("lora_alpha": 2, "alpha_pattern": {"roj": 12})", "v_proj"), 0.5F) << "no whole name";
  EXPECT_EQ(scale_of(R"("bias": "none")", "q_proj"), 2.0F) << "PEFT's default of alpha is 8";
}

TEST(AdapterFile, FingerprintsTellAdaptersApart) {
  const auto first = open_adapter(whole_adapter(), llama());
  const auto again = open_adapter(whole_adapter(), llama());
  const auto scaled = open_adapter(whole_adapter({.alpha = 9}), llama());
  const fs::path changed = whole_adapter();
  std::string bytes = read(changed / "adapter_model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write(changed / "adapter_model.safetensors", bytes);
  EXPECT_EQ(first->fingerprint, again->fingerprint);
  EXPECT_NE(first->fingerprint, scaled->fingerprint);
  EXPECT_NE(first->fingerprint, open_adapter(changed, llama())->fingerprint);
}

TEST(AdapterFile, OtherKindsOfAdaptersAreRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("peft_type": "IA3")", "'peft_type' must be \"LORA\""},
      {R"("r": 4)", "'peft_type' must be \"LORA\""},
      {R"("peft_type": "LORA", "use_dora": true)", "'use_dora' is not supported"},
      {R"("peft_type": "LORA", "lora_bias": true)", "'lora_bias' is not supported"},
      {R"("peft_type": "LORA", "bias": "all")", "'bias' must be \"none\""},
      {R"("peft_type": "LORA", "modules_to_save": ["lm_head"])", "'modules_to_save' is not supported"},
      {R"("peft_type": "LORA", "target_parameters": ["mlp.experts.gate_up_proj"])",
       "'target_parameters' is not supported"},
      {R"("peft_type": "LORA", "alora_invocation_tokens": [1, 2])",
       "'alora_invocation_tokens' is not supported"},
      {R"("peft_type": "LORA", "alpha_pattern": {".*q_proj": 4})", "names of modules"},
      {R"("peft_type": "LORA", "alpha_pattern": {"q_proj": "x"})", "names of modules"},
      {R"("peft_type": "LORA", "lora_alpha": "x")", "'lora_alpha'"},
      {R"("peft_type": 3)", "'peft_type'"}};
  for (const auto& [config, reason] : cases) {
    const fs::path folder = whole_adapter();
    write(folder / "adapter_config.json", "{" + config + "}");
    const auto file = open_adapter(folder, llama());
    ASSERT_FALSE(file.ok()) << config;
    EXPECT_NE(file.error().message.find(reason), std::string::npos) << file.error().message;
  }
}

TEST(AdapterFile, DamagedAndForeignFilesAreRefused) {
  const std::vector<std::pair<std::function<void(const fs::path&)>, std::string>> cases = {
      {[](const fs::path& folder) { fs::remove(folder / "adapter_config.json"); }, "expected an adapter"},
      {[](const fs::path& folder) { fs::remove(folder / "adapter_model.safetensors"); }, "adapter_model"},
      {[](const fs::path& folder) { fs::resize_file(folder / "adapter_model.safetensors", 500); },
       "adapter_model"},
      {[](const fs::path& folder) {
         replace(folder / "adapter_model.safetensors", "0.self_attn.q_proj.lora_B",
                 "0.self_attn.q_proj.xxxxxx");
       },
       "no part of a low-rank update"},
      {[](const fs::path& folder) {
         replace(folder / "adapter_model.safetensors", "0.self_attn.q_proj.lora_B",
                 "9.self_attn.q_proj.lora_B");
       },
       "one of the two matrices"},
      {[](const fs::path& folder) {
         replace(folder / "adapter_model.safetensors", "layers.1.self_attn.q_proj",
                 "layers.7.self_attn.q_proj");
       },
       "model.layers.7.self_attn.q_proj.weight"},
      {[](const fs::path& folder) {
         replace(folder / "adapter_model.safetensors", "layers.1.mlp.up_proj", "layers.1.mlp.up_xxxx");
       },
       "no matrix of this model"},
      {[](const fs::path& folder) {
         replace(folder / "adapter_model.safetensors", "model.layers.1.mlp.up_proj",
                 "model.embed.tokens.x.xxxxx");
       },
       "embedding"}};
  for (const auto& [damage, reason] : cases) {
    const fs::path folder = whole_adapter();
    damage(folder);
    expect_refused(folder, reason);
  }
}

TEST(AdapterFile, OfAnotherModelIsRefused) {
  const fs::path folder = fs::path(testing::TempDir()) / "adapter_files";
  fs::remove_all(folder);
  write_adapter(folder, open_model(model_data("qwen3"))->config, 1);
  expect_refused(folder, "the adapter is of another model");
}

TEST(AdapterFile, GgufFilesSayWhatTheyAre) {
  const fs::path stored = fs::path(OUTRIDER_SOURCE_DIR) / "tests/data/adapters/llama/adapter.gguf";
  const auto file = open_adapter(stored, llama());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->format, "gguf");
  EXPECT_EQ(file->updates.size(), 7u * static_cast<size_t>(llama().layer_count));
  const fs::path copy = fs::path(testing::TempDir()) / "copy.gguf";
  const std::vector<std::array<std::string, 3>> cases = {
      {"llama", "qwen2", "an adapter of the architecture 'qwen2' does not fit"},
      {"adapter.type", "adapter.tipe", "adapter.type \"lora\""},
      {"adapter.lora.alpha", "adapter.lora.alphb", ""},
      {"blk.1.ffn_up.weight.lora_a", "blk.1.ffn_up.weight.lora_c", "no part of a low-rank update"}};
  for (const auto& [from, to, reason] : cases) {
    fs::copy_file(stored, copy, fs::copy_options::overwrite_existing);
    replace(copy, from, to);
    if (!reason.empty()) {
      expect_refused(copy, reason);
    } else {
      EXPECT_EQ(open_adapter(copy, llama())->updates.front().scale, 1) << "without alpha";
    }
  }
}

TEST(AdapterFile, OfNothingIsRefused) {
  const fs::path folder = whole_adapter({.modules = {}});
  expect_refused(folder, "no low-rank updates");
  expect_refused(folder / "nowhere", "expected an adapter");
  write(folder / "text.gguf", "GGUF");
  expect_refused(folder / "text.gguf", "text.gguf");
}

}  // namespace
}  // namespace outrider
