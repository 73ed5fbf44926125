// SPDX-License-Identifier: Apache-2.0
#include "training/lm/llama_config.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/hf/hf_config.h"
#include "platform/durable_file.h"

namespace outrider::training {

using nlohmann::json;

void add_shape_options(CLI::App& command, LlamaConfig& shape) {
  command.option_defaults()->group("Shape");
  command.add_option("--hidden", shape.hidden_size, "width of the residual stream");
  command.add_option("--layers", shape.layers, "number of layers");
  command.add_option("--heads", shape.heads, "query heads");
  command.add_option("--kv-heads", shape.kv_heads, "key/value heads");
  command.add_option("--ffn", shape.ffn_size, "width of the feed-forward network");
}

Status check_shape(const LlamaConfig& config) {
  constexpr int kBlock = 32;
  const auto bad = [](const std::string& what) { return usage_error("cannot train this shape: " + what); };
  if (config.vocab_size <= 0) return bad("the vocabulary is empty");
  if (config.layers <= 0 || config.heads <= 0 || config.kv_heads <= 0) {
    return bad("--layers, --heads and --kv-heads must be positive");
  }
  if (config.hidden_size % config.heads != 0 || config.head_dim() % kBlock != 0) {
    return bad("--hidden must be --heads times a multiple of 32, found " +
               std::to_string(config.hidden_size) + " for " + std::to_string(config.heads) + " heads");
  }
  if (config.heads % config.kv_heads != 0) return bad("--heads must be a multiple of --kv-heads");
  if (config.ffn_size <= 0 || config.ffn_size % kBlock != 0) return bad("--ffn must be a multiple of 32");
  return {};
}

Result<LlamaConfig> read_config(const std::filesystem::path& model_dir) {
  OUTRIDER_TRY(const ModelConfig stored, read_hf_config(model_dir));
  if (stored.family != "llama" || !stored.tied_embeddings)
    return input_error(model_dir.string() + ": expected a llama model with tied embeddings");
  const LlamaConfig config = {.vocab_size = static_cast<int>(stored.vocab_size),
                              .hidden_size = static_cast<int>(stored.hidden_size),
                              .layers = static_cast<int>(stored.layer_count),
                              .heads = static_cast<int>(stored.head_count),
                              .kv_heads = static_cast<int>(stored.kv_head_count),
                              .ffn_size = static_cast<int>(stored.ffn_size),
                              .max_context = static_cast<int>(stored.max_context),
                              .rope_theta = stored.ropes.front().theta,
                              .rms_eps = stored.norm.epsilon};
  OUTRIDER_RETURN_IF_ERROR(check_shape(config));
  return config;
}

nlohmann::json config_json(const LlamaConfig& config, std::optional<int> eos_token) {
  return {
      {"architectures", {"LlamaForCausalLM"}},
      {"model_type", "llama"},
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden_size},
      {"intermediate_size", config.ffn_size},
      {"num_hidden_layers", config.layers},
      {"num_attention_heads", config.heads},
      {"num_key_value_heads", config.kv_heads},
      {"head_dim", config.head_dim()},
      {"max_position_embeddings", config.max_context},
      {"rope_theta", config.rope_theta},
      {"rms_norm_eps", config.rms_eps},
      {"hidden_act", "silu"},
      {"tie_word_embeddings", true},
      {"attention_bias", false},
      {"mlp_bias", false},
      {"bos_token_id", nullptr},
      {"eos_token_id", eos_token ? json(*eos_token) : json()},
      {"torch_dtype", "bfloat16"},
  };
}

Status write_config(const LlamaConfig& config, int eos_token, const std::filesystem::path& model_dir) {
  return write_durably(model_dir / "config.json", config_json(config, eos_token).dump(2) + "\n");
}

}  // namespace outrider::training
