// SPDX-License-Identifier: Apache-2.0
#include "formats/families.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace outrider {
namespace {

Status read_granite_scales(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(const auto embedding, root.number("embedding_multiplier"));
  OUTRIDER_TRY(const auto residual, root.number("residual_multiplier"));
  OUTRIDER_TRY(const auto attention, root.number("attention_multiplier"));
  OUTRIDER_TRY(const auto logits, root.number("logits_scaling"));
  config->scales = {.embedding = embedding.value_or(1),
                    .residual = residual.value_or(1),
                    .attention = attention.value_or(1),
                    .logits = 1 / logits.value_or(1)};
  return {};
}

constexpr TensorName kOlmo2Names[] = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                                      {"post_mlp_layernorm", "post_feedforward_layernorm"}};

constexpr ModelFamily kFamilies[] = {
    // Llama 2, 3, 3.1, 3.2 and models of their form (SmolLM2).
    {.name = "llama",
     .hf_architecture = "LlamaForCausalLM",
     .gguf_architecture = "llama",
     .has_interleaved_rows = true,
     .max_context = 2048,
     .kv_heads = 0,
     .head_dim = 0,
     .window_rule = WindowRule::kIgnored,
     .sliding_window = 0,
     .qkv_bias = Use::kOptional,
     .output_bias = Use::kOptional,
     .mlp_bias = Use::kOptional,
     .qk_norm = Use::kNever},
    // Early versions have a sliding window. GGUF files of Mistral call themselves llama.
    {.name = "mistral",
     .hf_architecture = "MistralForCausalLM",
     .gguf_architecture = "llama",
     .has_interleaved_rows = true,
     .max_context = 131072,
     .kv_heads = 8,
     .head_dim = 0,
     .window_rule = WindowRule::kStated,
     .sliding_window = 4096,
     .qkv_bias = Use::kNever,
     .output_bias = Use::kNever,
     .mlp_bias = Use::kNever,
     .qk_norm = Use::kNever},
    // Qwen2 and Qwen2.5.
    {.name = "qwen2",
     .hf_architecture = "Qwen2ForCausalLM",
     .gguf_architecture = "qwen2",
     .has_interleaved_rows = false,
     .max_context = 32768,
     .kv_heads = 32,
     .head_dim = 0,
     .window_rule = WindowRule::kSwitched,
     .sliding_window = 4096,
     .qkv_bias = Use::kAlways,
     .output_bias = Use::kNever,
     .mlp_bias = Use::kNever,
     .qk_norm = Use::kNever},
    // The dense models of Qwen3; head_dim is independent of hidden_size.
    {.name = "qwen3",
     .hf_architecture = "Qwen3ForCausalLM",
     .gguf_architecture = "qwen3",
     .has_interleaved_rows = false,
     .max_context = 32768,
     .kv_heads = 32,
     .head_dim = 128,
     .window_rule = WindowRule::kSwitched,
     .sliding_window = 4096,
     .qkv_bias = Use::kOptional,
     .output_bias = Use::kOptional,
     .mlp_bias = Use::kNever,
     .qk_norm = Use::kAlways},
    // OLMo 2: norms after attention and MLP, and of all queries and keys at once.
    {.name = "olmo2",
     .hf_architecture = "Olmo2ForCausalLM",
     .gguf_architecture = "olmo2",
     .has_interleaved_rows = false,
     .max_context = 2048,
     .kv_heads = 0,
     .head_dim = 0,
     .window_rule = WindowRule::kIgnored,
     .sliding_window = 0,
     .qkv_bias = Use::kOptional,
     .output_bias = Use::kOptional,
     .mlp_bias = Use::kNever,
     .qk_norm = Use::kAlways,
     .qk_norm_kind = QkNorm::kWhole,
     .norm = {.placement = NormPlacement::kOutput, .epsilon = 1e-5f},
     .hf_names = kOlmo2Names},
    // Granite 3 and the dense models of Granite 4: constant factors.
    {.name = "granite",
     .hf_architecture = "GraniteForCausalLM",
     .gguf_architecture = "granite",
     .has_interleaved_rows = true,
     .max_context = 2048,
     .kv_heads = 0,
     .head_dim = 0,
     .window_rule = WindowRule::kIgnored,
     .sliding_window = 0,
     .qkv_bias = Use::kOptional,
     .output_bias = Use::kOptional,
     .mlp_bias = Use::kOptional,
     .qk_norm = Use::kNever,
     .read_hf_traits = read_granite_scales},
};

}  // namespace

const ModelFamily* find_family(std::string_view value, std::string_view ModelFamily::*column) {
  const auto found = std::ranges::find(kFamilies, value, column);
  return found == std::end(kFamilies) ? nullptr : &*found;
}

std::string list_families(std::string_view ModelFamily::*column, std::string_view last) {
  std::vector<std::string_view> names;
  for (const ModelFamily& family : kFamilies) {
    if (find_family(family.*column, column) == &family) names.push_back(family.*column);
  }
  std::string list;
  for (const std::string_view name : names)
    list.append(list.empty() ? "" : name == names.back() ? last : ", ").append(name);
  return list;
}

}  // namespace outrider
