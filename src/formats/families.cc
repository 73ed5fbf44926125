// SPDX-License-Identifier: Apache-2.0
#include "formats/families.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
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

Status read_query_temperature(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(auto rope, root.object("rope_parameters"));
  if (!rope) {
    OUTRIDER_TRY(rope, root.object("rope_scaling"));
  }
  if (!rope) return root.fail("'rope_parameters' is missing");
  OUTRIDER_TRY(const auto beta, rope->number("llama_4_scaling_beta"));
  config->query_temperature = {.beta = beta.value_or(0),
                               .original_context = config->ropes.front().scaling.original_context};
  return {};
}

// Gemma 2 has caps unless its configuration says null, Gemma 3 a cap of logits only where one is stated.
Result<double> read_softcap(const JsonObject& root, std::string_view key, double usual) {
  OUTRIDER_TRY(const auto cap, root.number(key));
  return cap.value_or(root.contains(key) ? 0 : usual);
}

Status read_gemma_traits(const JsonObject& root, double attention_softcap, double logit_softcap,
                         ModelConfig* config) {
  OUTRIDER_TRY(const auto query_size, root.number("query_pre_attn_scalar"));
  OUTRIDER_TRY(const auto sees_later_tokens, root.boolean("use_bidirectional_attention"));
  if (sees_later_tokens.value_or(false))
    return root.fail("attention to later tokens (use_bidirectional_attention) is not supported");
  config->scales.attention = 1 / std::sqrt(query_size.value_or(256));
  OUTRIDER_TRY(config->attention_softcap, read_softcap(root, "attn_logit_softcapping", attention_softcap));
  OUTRIDER_TRY(config->logit_softcap, read_softcap(root, "final_logit_softcapping", logit_softcap));
  return {};
}

Status read_gemma2_traits(const JsonObject& root, ModelConfig* config) {
  return read_gemma_traits(root, 50, 30, config);
}

Status read_gemma3_traits(const JsonObject& root, ModelConfig* config) {
  return read_gemma_traits(root, 0, 0, config);
}

// GGUF files do not say that the 27B models, alone, scale scores by the size of a head's share of the width.
void derive_gemma_scales(ModelConfig* config, int64_t layers_of_27b) {
  config->scales.embedding = std::sqrt(static_cast<float>(config->hidden_size));
  if (config->scales.attention != 0 || config->layer_count != layers_of_27b) return;
  const auto share = static_cast<double>(config->hidden_size) / static_cast<double>(config->head_count);
  config->scales.attention = 1 / std::sqrt(share);
}

void derive_gemma2_scales(ModelConfig* config) { derive_gemma_scales(config, 46); }

// Gemma 3 applies no cap to scores, even where its configuration states one.
void derive_gemma3_scales(ModelConfig* config) {
  config->attention_softcap = 0;
  derive_gemma_scales(config, 62);
}

// The sizes of layers without a window, from one object for each layer or, in older files, from keys for all.
Result<LayerTraits> read_full_layer(const JsonObject& root, int64_t layer) {
  LayerTraits traits;
  OUTRIDER_TRY(const auto by_layer, root.object("per_layer_config"));
  OUTRIDER_TRY(const auto uses_keys, root.boolean("attention_k_eq_v"));
  std::optional<JsonObject> own;
  if (by_layer) {
    OUTRIDER_TRY(own, by_layer->object(std::to_string(layer)));
  }
  OUTRIDER_TRY(const auto head_dim, (own ? *own : root).integer(by_layer ? "head_dim" : "global_head_dim"));
  OUTRIDER_TRY(const auto kv_heads,
               (own ? *own : root).integer(by_layer ? "num_key_value_heads" : "num_global_key_value_heads"));
  traits.head_dim = head_dim.value_or(512);
  traits.values_are_keys = uses_keys.value_or(false);
  if (traits.values_are_keys || by_layer) traits.kv_head_count = kv_heads.value_or(0);
  return traits;
}

// The last layers read the keys and values of the last layer before them with the same window.
void share_keys(int64_t shared, int64_t wide_ffn, std::vector<LayerTraits>& layers) {
  const int64_t first = std::ssize(layers) - std::clamp<int64_t>(shared, 0, std::ssize(layers) - 1);
  for (int64_t i = first; i < std::ssize(layers); ++i) {
    LayerTraits& layer = layers[static_cast<size_t>(i)];
    int64_t from = first - 1;
    while (from > 0 && layers[static_cast<size_t>(from)].window != layer.window) --from;
    layer.kv_layer = from;
    layer.ffn_size = wide_ffn;
  }
}

Status read_gemma4_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(const auto has_experts, root.boolean("enable_moe_block"));
  if (has_experts.value_or(false))
    return root.fail("mixtures of experts are not supported; dense models are");
  OUTRIDER_TRY(config->logit_softcap, read_softcap(root, "final_logit_softcapping", 0));
  OUTRIDER_TRY(const auto input_size, root.integer("hidden_size_per_layer_input"));
  OUTRIDER_TRY(const auto input_vocab, root.integer("vocab_size_per_layer_input"));
  config->layer_inputs = {.size = input_size.value_or(256), .vocab_size = input_vocab.value_or(262144)};
  OUTRIDER_TRY(const auto shared, root.integer("num_kv_shared_layers"));
  OUTRIDER_TRY(const auto is_wide, root.boolean("use_double_wide_mlp"));
  constexpr int64_t kMaxLayers = 1024;  // validate() has the message for more
  std::vector<LayerTraits> layers;
  for (int64_t i = 0; i < std::min(config->layer_count, kMaxLayers); ++i) {
    LayerTraits layer = config->traits_of(i);
    if (layer.window == 0) {
      OUTRIDER_TRY(const LayerTraits full, read_full_layer(root, i));
      layer.head_dim = full.head_dim;
      layer.kv_head_count = full.kv_head_count;
      layer.values_are_keys = full.values_are_keys;
    }
    layers.push_back(layer);
  }
  if (!layers.empty())
    share_keys(shared.value_or(0), is_wide.value_or(false) ? 2 * config->ffn_size : 0, layers);
  config->set_layer_traits(std::move(layers));
  return {};
}

void derive_gemma4_traits(ModelConfig* config) {
  config->scales.embedding = std::sqrt(static_cast<float>(config->hidden_size));
  config->scales.attention = 1;
  config->v_norm = true;
  config->layer_scalars = true;
}

constexpr TensorName kGemmaNames[] = {{"post_self_attn_layernorm", "post_attention_layernorm"},
                                      {"post_attention_layernorm", "pre_feedforward_layernorm"},
                                      {"post_mlp_layernorm", "post_feedforward_layernorm"}};

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
    // Every fourth layer does not rotate queries and keys.
    {.name = "smollm3",
     .hf_architecture = "SmolLM3ForCausalLM",
     .gguf_architecture = "smollm3",
     .has_interleaved_rows = true,
     .max_context = 32768,
     .kv_heads = 4,
     .head_dim = 0,
     .window_rule = WindowRule::kSwitched,
     .sliding_window = 0,
     .rope_theta = 2000000,
     .qkv_bias = Use::kOptional,
     .output_bias = Use::kOptional,
     .mlp_bias = Use::kOptional,
     .qk_norm = Use::kNever,
     .tied_embeddings = true,
     .nope_period = 4},
    // Phi-3, Phi-3.5, Phi-4 and Phi-4-mini: LongRoPE, partly rotated heads, fused matrices.
    {.name = "phi3",
     .hf_architecture = "Phi3ForCausalLM",
     .gguf_architecture = "phi3",
     .has_interleaved_rows = false,
     .max_context = 4096,
     .kv_heads = 0,
     .head_dim = 0,
     .window_rule = WindowRule::kStated,
     .sliding_window = 0,
     .qkv_bias = Use::kNever,
     .output_bias = Use::kNever,
     .mlp_bias = Use::kNever,
     .qk_norm = Use::kNever,
     .fuses_projections = true,
     .norm = {.epsilon = 1e-5f}},
    // Ministral 8B of 2024: layers with and without a sliding window.
    {.name = "ministral",
     .hf_architecture = "MinistralForCausalLM",
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
    // Ministral 3: YaRN, and queries that grow with their position.
    {.name = "ministral3",
     .hf_architecture = "Ministral3ForCausalLM",
     .gguf_architecture = "mistral3",
     .has_interleaved_rows = true,
     .max_context = 262144,
     .kv_heads = 8,
     .head_dim = 128,
     .window_rule = WindowRule::kStated,
     .sliding_window = 0,
     .qkv_bias = Use::kNever,
     .output_bias = Use::kNever,
     .mlp_bias = Use::kNever,
     .qk_norm = Use::kNever,
     .norm = {.epsilon = 1e-5f},
     .read_hf_traits = read_query_temperature},
    // Gemma 2: norms before and after attention and MLP, soft caps, a window in every second layer.
    {.name = "gemma2",
     .hf_architecture = "Gemma2ForCausalLM",
     .gguf_architecture = "gemma2",
     .has_interleaved_rows = false,
     .max_context = 8192,
     .kv_heads = 4,
     .head_dim = 256,
     .window_rule = WindowRule::kStated,
     .sliding_window = 4096,
     .qkv_bias = Use::kOptional,
     .output_bias = Use::kOptional,
     .mlp_bias = Use::kNever,
     .qk_norm = Use::kNever,
     .tied_embeddings = true,
     .full_period = 2,
     .norm = {.placement = NormPlacement::kBoth, .epsilon = 1e-6f, .adds_one = true},
     .mlp = {.activation = Activation::kGeluTanh},
     .read_hf_traits = read_gemma2_traits,
     .derive_traits = derive_gemma2_scales,
     .hf_names = kGemmaNames},
    // Gemma 3, text: five layers of six have a window and a RoPE base of their own.
    {.name = "gemma3",
     .hf_architecture = "Gemma3ForCausalLM",
     .gguf_architecture = "gemma3",
     .has_interleaved_rows = false,
     .vocab_size = 262208,
     .heads = 8,
     .max_context = 131072,
     .kv_heads = 4,
     .head_dim = 256,
     .window_rule = WindowRule::kStated,
     .sliding_window = 4096,
     .rope_theta = 1000000,
     .qkv_bias = Use::kOptional,
     .output_bias = Use::kOptional,
     .mlp_bias = Use::kNever,
     .qk_norm = Use::kAlways,
     .tied_embeddings = true,
     .full_period = 6,
     .window_rope_theta = 10000,
     .norm = {.placement = NormPlacement::kBoth, .epsilon = 1e-6f, .adds_one = true},
     .mlp = {.activation = Activation::kGeluTanh},
     .read_hf_traits = read_gemma3_traits,
     .derive_traits = derive_gemma3_scales,
     .hf_names = kGemmaNames},
    // The dense models of Gemma 4, text: norms of values, larger heads without a window, layers that read the
    // keys and values of others, inputs for every layer.
    {.name = "gemma4",
     .hf_architecture = "Gemma4ForCausalLM",
     .gguf_architecture = "",
     .has_interleaved_rows = false,
     .vocab_size = 262144,
     .heads = 8,
     .max_context = 131072,
     .kv_heads = 4,
     .head_dim = 256,
     .window_rule = WindowRule::kStated,
     .sliding_window = 512,
     .rope_theta = 1000000,
     .qkv_bias = Use::kOptional,
     .output_bias = Use::kOptional,
     .mlp_bias = Use::kNever,
     .qk_norm = Use::kAlways,
     .tied_embeddings = true,
     .full_period = 6,
     .window_rope_theta = 10000,
     .norm = {.placement = NormPlacement::kBoth, .epsilon = 1e-6f},
     .mlp = {.activation = Activation::kGeluTanh},
     .read_hf_traits = read_gemma4_traits,
     .derive_traits = derive_gemma4_traits,
     .hf_names = kGemmaNames},
};

}  // namespace

const ModelFamily* find_family(std::string_view value, std::string_view ModelFamily::*column) {
  const auto found = std::ranges::find(kFamilies, value, column);
  return found == std::end(kFamilies) ? nullptr : &*found;
}

std::string list_families(std::string_view ModelFamily::*column, std::string_view last) {
  std::vector<std::string_view> names;
  for (const ModelFamily& family : kFamilies) {
    const std::string_view name = family.*column;
    if (!name.empty() && find_family(name, column) == &family) names.push_back(name);
  }
  std::string list;
  for (const std::string_view name : names)
    list.append(list.empty() ? "" : name == names.back() ? last : ", ").append(name);
  return list;
}

}  // namespace outrider
