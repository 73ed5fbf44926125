// SPDX-License-Identifier: Apache-2.0
#include "formats/family_traits.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/quote.h"
#include "tensor/dtype.h"

namespace outrider {
namespace {

void set_biases(bool bias, ModelConfig* config) {
  config->qkv_bias = config->output_bias = config->mlp.bias = bias;
}

// Queries and keys do not turn; positions are told otherwise.
void drop_rope(ModelConfig* config) {
  for (LayerTraits& layer : config->layer_traits) layer.rope = LayerTraits::kNoRope;
}

void set_learned_positions(int64_t offset, ModelConfig* config) {
  config->learned_positions = {.count = config->max_context, .offset = offset};
  drop_rope(config);
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

// GGUF files do not say that only the 27B models scale scores by the size of a head's share of the width.
void derive_gemma_scales(ModelConfig* config, int64_t layers_of_27b) {
  config->scales.embedding = std::sqrt(static_cast<float>(config->hidden_size));
  if (config->scales.attention != 0 || config->layer_count != layers_of_27b) return;
  const auto share = static_cast<double>(config->hidden_size) / static_cast<double>(config->head_count);
  config->scales.attention = 1 / std::sqrt(share);
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

// Every layer has experts beside its dense MLP.
Status read_gemma4_experts(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(const auto count, root.integer("num_experts"));
  OUTRIDER_TRY(const auto used, root.integer("top_k_experts"));
  OUTRIDER_TRY(const auto ffn_size, root.integer("moe_intermediate_size"));
  config->experts.count = count.value_or(0);
  config->experts.used = used.value_or(0);
  config->experts.ffn_size = ffn_size.value_or(0);
  config->experts.has_own_norms = true;
  for (LayerTraits& layer : config->layer_traits) layer.mlp = &kExpertsAndDenseKind;
  return {};
}

}  // namespace

Result<bool> flag(const JsonObject& root, std::string_view key, bool absent) {
  OUTRIDER_TRY(const auto value, root.boolean(key));
  return value.value_or(absent);
}

Status refuse(const JsonObject& root, std::string_view key) {
  OUTRIDER_TRY(const bool is_set, flag(root, key, false));
  return is_set ? Status(root.fail(quote(key) + " is not supported")) : Status();
}

Status read_falcon_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(const bool is_new, flag(root, "new_decoder_architecture", false));
  OUTRIDER_TRY(const bool multi_query, flag(root, "multi_query", true));
  OUTRIDER_TRY(const bool parallel, flag(root, "parallel_attn", true));
  OUTRIDER_TRY(const bool alibi, flag(root, "alibi", false));
  OUTRIDER_TRY(const bool bias, flag(root, "bias", false));
  OUTRIDER_TRY(const auto norms, root.integer("num_ln_in_parallel_attn"));
  OUTRIDER_TRY(const auto kv_heads, root.integer("num_kv_heads"));
  if (is_new && !parallel)
    return root.fail("new_decoder_architecture without parallel_attn is not supported");
  set_biases(bias, config);
  config->kv_head_count = is_new || !multi_query ? kv_heads.value_or(config->head_count) : 1;
  if (parallel)
    config->block = is_new && norms.value_or(2) == 2 ? BlockKind::kParallel : BlockKind::kParallelNorm;
  if (!alibi) return {};
  drop_rope(config);
  // transformers keeps slopes in bf16, and scales them like scores.
  const double scale = 1 / std::sqrt(static_cast<double>(config->head_dim));
  for (const float slope : alibi_slopes(config->head_count, 8)) {
    const float rounded = bf16_to_f32(f32_to_bf16(slope));
    config->alibi_slopes.push_back(static_cast<float>(rounded * scale));
  }
  return {};
}

Status read_gemma2_traits(const JsonObject& root, ModelConfig* config) {
  return read_gemma_traits(root, 50, 30, config);
}

Status read_gemma3_traits(const JsonObject& root, ModelConfig* config) {
  return read_gemma_traits(root, 0, 0, config);
}

void derive_gemma2_scales(ModelConfig* config) { derive_gemma_scales(config, 46); }

// Gemma 3 applies no cap to scores, even where its configuration states one.
void derive_gemma3_scales(ModelConfig* config) {
  config->attention_softcap = 0;
  derive_gemma_scales(config, 62);
}

Status read_gemma4_traits(const JsonObject& root, ModelConfig* config) {
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
  // All layers of an assistant read keys and values of its target. Its file says that all layers share keys.
  if (shared.value_or(0) < config->layer_count) share_keys(shared.value_or(0), &layers);
  for (LayerTraits& layer : layers) {
    if (is_wide.value_or(false) && layer.kv_layer != LayerTraits::kOwn) layer.ffn_size = 2 * config->ffn_size;
  }
  config->set_layer_traits(std::move(layers));
  OUTRIDER_TRY(const bool has_experts, flag(root, "enable_moe_block", false));
  return has_experts ? read_gemma4_experts(root, config) : Status();
}

void share_keys(int64_t shared, std::vector<LayerTraits>* layers) {
  if (layers->empty()) return;
  const int64_t first = std::ssize(*layers) - std::clamp<int64_t>(shared, 0, std::ssize(*layers) - 1);
  for (int64_t i = first; i < std::ssize(*layers); ++i) {
    LayerTraits& layer = (*layers)[static_cast<size_t>(i)];
    int64_t from = first - 1;
    while (from > 0 && (*layers)[static_cast<size_t>(from)].window != layer.window) --from;
    layer.kv_layer = from;
  }
}

void derive_gemma4_traits(ModelConfig* config) {
  config->scales.embedding = std::sqrt(static_cast<float>(config->hidden_size));
  config->scales.attention = 1;
  config->v_norm = true;
  config->layer_scalars = true;
}

Status read_glm_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(config->qkv_bias, flag(root, "attention_bias", true));
  return {};
}

Status read_gpt2_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_RETURN_IF_ERROR(refuse(root, "add_cross_attention"));
  OUTRIDER_TRY(const bool scales, flag(root, "scale_attn_weights", true));
  OUTRIDER_TRY(config->scales.attention_by_layer, flag(root, "scale_attn_by_inverse_layer_idx", false));
  if (!scales) config->scales.attention = 1;
  config->kv_head_count = config->head_count;
  set_biases(true, config);
  set_learned_positions(0, config);
  return {};
}

Status read_granite_traits(const JsonObject& root, ModelConfig* config) {
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

Status read_mpt_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(const auto attention, root.object("attn_config"));
  if (attention) {
    OUTRIDER_RETURN_IF_ERROR(refuse(*attention, "qk_ln"));
    OUTRIDER_RETURN_IF_ERROR(refuse(*attention, "prefix_lm"));
    OUTRIDER_TRY(const auto type, attention->string("attn_type"));
    OUTRIDER_TRY(const bool alibi, flag(*attention, "alibi", true));
    if (type.value_or("multihead_attention") != "multihead_attention" || !alibi)
      return root.fail("MPT models need the attn_type multihead_attention, and alibi");
    OUTRIDER_TRY(const auto limit, attention->number("clip_qkv"));
    OUTRIDER_TRY(const auto scale, attention->number("softmax_scale"));
    config->qkv_limit = limit.value_or(0);
    config->scales.attention = scale.value_or(0);
  }
  if (root.find("logit_scale")) return root.fail("'logit_scale' is not supported");
  config->kv_head_count = config->head_count;
  config->alibi_slopes = alibi_slopes(config->head_count, 8);  // transformers ignores alibi_bias_max
  drop_rope(config);
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

Status read_opt_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(const bool norms_first, flag(root, "do_layer_norm_before", true));
  OUTRIDER_TRY(const bool no_final, flag(root, "_remove_final_layer_norm", false));
  OUTRIDER_TRY(const bool affine, flag(root, "layer_norm_elementwise_affine", true));
  OUTRIDER_TRY(const bool bias, flag(root, "enable_bias", true));
  OUTRIDER_TRY(const auto embedding, root.integer("word_embed_proj_dim"));
  config->norm.placement = norms_first ? NormPlacement::kInput : NormPlacement::kSum;
  config->norm.has_final = norms_first && !no_final;
  config->norm.has_weight = config->norm.has_bias = affine;
  config->embedding_size = embedding.value_or(0);
  config->kv_head_count = config->head_count;
  set_biases(bias, config);
  set_learned_positions(2, config);
  return {};
}

Status read_stablelm_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(config->qkv_bias, flag(root, "use_qkv_bias", false));
  OUTRIDER_TRY(const bool norms_heads, flag(root, "qk_layernorm", false));
  OUTRIDER_TRY(const bool parallel, flag(root, "use_parallel_residual", false));
  if (norms_heads) config->qk_norm = QkNorm::kEach;
  if (parallel) config->block = BlockKind::kParallelNorm;
  return {};
}

Status read_starcoder_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(const bool multi_query, flag(root, "multi_query", true));
  OUTRIDER_RETURN_IF_ERROR(read_gpt2_traits(root, config));
  if (multi_query) config->kv_head_count = 1;
  return {};
}

Status read_starcoder2_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(const bool bias, flag(root, "use_bias", true));
  set_biases(bias, config);
  return {};
}

}  // namespace outrider
