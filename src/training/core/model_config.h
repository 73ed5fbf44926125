// SPDX-License-Identifier: Apache-2.0
// Shape of a Llama network and its Hugging Face config.json.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "outrider/result.h"

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

// Refuses shapes the engine's block-quantized weights could not hold (rows must be multiples of 32).
Status check_shape(const LlamaConfig& config);

Result<LlamaConfig> read_config(const std::filesystem::path& model_dir);

// config.json of LlamaForCausalLM with tied embeddings; `eos_token` as in generation_config.json's first
// entry.
nlohmann::json config_json(const LlamaConfig& config, std::optional<int> eos_token);
Status write_config(const LlamaConfig& config, int eos_token, const std::filesystem::path& model_dir);

}  // namespace outrider::training
