// SPDX-License-Identifier: Apache-2.0
// Shape of a Llama network in training, its command line options and its Hugging Face config.json.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "outrider/result.h"

namespace CLI {
class App;
}

namespace outrider::training {

struct LlamaConfig {
  int vocab_size = 0;
  int hidden_size = 256;
  int layers = 6;
  int heads = 4;
  int kv_heads = 2;
  int ffn_size = 768;
  int max_context = 1024;
  double rope_theta = 10000.0;
  double rms_eps = 1e-5;

  int head_dim() const { return hidden_size / heads; }
  int qkv_rows() const { return (heads + 2 * kv_heads) * head_dim(); }
};

// --hidden, --layers, --heads, --kv-heads and --ffn
void add_shape_options(CLI::App& command, LlamaConfig& shape);

// Error: the engine's block-quantized weights cannot hold this shape (rows must be multiples of 32).
Status check_shape(const LlamaConfig& config);

// Reads config.json. Error: not a Llama model with tied embeddings.
Result<LlamaConfig> read_config(const std::filesystem::path& model_dir);

// The config.json of LlamaForCausalLM with tied embeddings. `eos_token` is the first one of
// generation_config.json.
nlohmann::json config_json(const LlamaConfig& config, std::optional<int> eos_token);
Status write_config(const LlamaConfig& config, int eos_token, const std::filesystem::path& model_dir);

}  // namespace outrider::training
