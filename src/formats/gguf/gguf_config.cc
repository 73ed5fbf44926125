// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/quote.h"
#include "formats/families.h"
#include "formats/gguf/architecture_keys.h"
#include "formats/gguf/gguf_experts.h"
#include "formats/gguf/gguf_layers.h"
#include "formats/gguf/gguf_metadata.h"
#include "formats/gguf/gguf_rope.h"

namespace outrider {
namespace {

Status read_sizes(const ArchitectureKeys& keys, ModelConfig* config) {
  OUTRIDER_TRY(config->layer_count, keys.require_integer("block_count"));
  OUTRIDER_TRY(const auto drafting_layers, keys.integer("nextn_predict_layers"));
  config->layer_count -= std::max<int64_t>(drafting_layers.value_or(0), 0);
  OUTRIDER_TRY(config->max_context, keys.require_integer("context_length"));
  OUTRIDER_TRY(config->hidden_size, keys.require_integer("embedding_length"));
  OUTRIDER_TRY(const auto ffn_sizes, keys.integers("feed_forward_length"));
  if (ffn_sizes.empty()) return keys.fail(keys.full("feed_forward_length") + " is missing");
  config->ffn_size = ffn_sizes.front();
  OUTRIDER_TRY(config->head_count, keys.require_integer("attention.head_count"));
  OUTRIDER_TRY(const auto kv_heads, keys.integers("attention.head_count_kv"));
  // Layers without attention have none.
  const auto some = std::ranges::find_if(kv_heads, [](int64_t heads) { return heads != 0; });
  config->kv_head_count = kv_heads.empty() ? config->head_count : some == kv_heads.end() ? 0 : *some;
  OUTRIDER_TRY(const auto key_length, keys.integer("attention.key_length"));
  OUTRIDER_TRY(const auto value_length, keys.integer("attention.value_length"));
  OUTRIDER_TRY(const auto latent_rank, keys.integer("attention.kv_lora_rank"));
  if (config->head_count < 1) return keys.fail(keys.full("attention.head_count") + " must be positive");
  config->head_dim = key_length.value_or(config->hidden_size / config->head_count);
  if (value_length.value_or(config->head_dim) != config->head_dim && !latent_rank)
    return keys.fail("keys and values must have the same head size");
  return {};
}

// The traits that a family has and the traits that its keys state.
Status read_traits(const ArchitectureKeys& keys, const ModelFamily& family, ModelConfig* config) {
  config->norm = family.norm;
  config->norm.adds_one = false;  // files hold the sums
  config->mlp = family.mlp;
  config->experts = family.experts;
  config->scales = family.scales;
  const std::string_view epsilon_key = family.norm.kind == NormKind::kRms ? "attention.layer_norm_rms_epsilon"
                                                                          : "attention.layer_norm_epsilon";
  OUTRIDER_TRY(const auto epsilon, keys.number(epsilon_key));
  if (!epsilon) return keys.fail(keys.full(epsilon_key) + " is missing");
  config->norm.epsilon = static_cast<float>(*epsilon);
  OUTRIDER_TRY(const auto embedding, keys.number("embedding_scale"));
  OUTRIDER_TRY(const auto residual, keys.number("residual_scale"));
  OUTRIDER_TRY(const auto attention, keys.number("attention.scale"));
  OUTRIDER_TRY(const auto logits, keys.number("logit_scale"));
  ScaleTraits& scales = config->scales;
  scales.embedding = embedding.value_or(scales.embedding);
  scales.residual = residual.value_or(scales.residual);
  scales.attention = attention.value_or(scales.attention);
  if (logits) scales.logits = 1 / *logits;
  OUTRIDER_TRY(const auto attention_cap, keys.number("attn_logit_softcapping"));
  OUTRIDER_TRY(const auto logit_cap, keys.number("final_logit_softcapping"));
  config->attention_softcap = attention_cap.value_or(0);
  config->logit_softcap = logit_cap.value_or(0);
  if (family.derive_traits != nullptr) family.derive_traits(config);
  return {};
}

// Positions that are not told by RoPE.
Status read_positions(const GgufFile& file, const ArchitectureKeys& keys, ModelConfig* config) {
  OUTRIDER_TRY(const auto max_bias, keys.number("attention.max_alibi_bias"));
  OUTRIDER_TRY(const auto limit, keys.number("attention.clamp_kqv"));
  config->qkv_limit = limit.value_or(0);
  if (max_bias.value_or(0) != 0) config->alibi_slopes = alibi_slopes(config->head_count, *max_bias);
  const auto learned = file.tensors.find("position_embd.weight");
  if (learned != file.tensors.end()) config->learned_positions.count = learned->second.shape.front();
  if (config->alibi_slopes.empty() && config->learned_positions.count == 0) return {};
  for (LayerTraits& layer : config->layer_traits) layer.rope = LayerTraits::kNoRope;
  return {};
}

// A smaller embedding for every layer.
Status read_layer_inputs(const GgufFile& file, const ArchitectureKeys& keys, ModelConfig* config) {
  OUTRIDER_TRY(const auto size, keys.integer("embedding_length_per_layer_input"));
  if (size.value_or(0) == 0) return {};
  const auto table = file.tensors.find("per_layer_token_embd.weight");
  if (table == file.tensors.end()) return keys.fail("tensor per_layer_token_embd.weight is missing");
  config->layer_inputs = {.size = *size, .vocab_size = table->second.shape.front()};
  return {};
}

// Reads the traits that a file tells only by the tensors it has.
Status read_tensor_traits(const GgufFile& file, const ArchitectureKeys& keys, const ModelFamily& family,
                          ModelConfig* config) {
  const auto has = [&](std::string_view name) { return file.tensors.contains(name); };
  const auto embedding = file.tensors.find("token_embd.weight");
  if (embedding == file.tensors.end())
    return keys.fail("tensor token_embd.weight is missing: the file has no model");
  config->vocab_size = embedding->second.shape.front();
  config->tied_embeddings = !has("output.weight");
  config->qkv_bias = has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias");
  config->output_bias = has("blk.0.attn_output.bias");
  config->mlp.bias = has("blk.0.ffn_up.bias");
  const bool norms_heads = has("blk.0.attn_q_norm.weight") || family.qk_norm_kind == QkNorm::kPlain ||
                           family.other_layers != nullptr;
  config->qk_norm = norms_heads ? family.qk_norm_kind : QkNorm::kNone;
  config->attention_sinks = has("blk.0.attn_sinks.weight");
  config->norm.has_bias = has("output_norm.bias");
  if (family.may_be_parallel && has("blk.0.attn_norm_2.weight")) {
    config->block = BlockKind::kParallel;
  } else if (family.may_be_parallel && !has("blk.0.ffn_norm.weight")) {
    config->block = BlockKind::kParallelNorm;
  }
  return read_layer_inputs(file, keys, config);
}

// Files name one end-of-text id, but chat models stop at several; the others are recognized by their
// spelling.
Status read_stop_tokens(const GgufMetadata& metadata, const TokenizerSpec& tokenizer, ModelConfig* config) {
  std::vector<TokenId>& stops = config->stop_tokens;
  if (tokenizer.eos) stops.push_back(*tokenizer.eos);
  for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    OUTRIDER_TRY(const auto id, metadata.token_id(key, tokenizer.pieces.size()));
    if (id) stops.push_back(*id);
  }
  for (size_t id = 0; id < tokenizer.pieces.size(); ++id) {
    if (tokenizer.attributes[id] != TokenAttribute::kControl) continue;
    if (ends_text_by_spelling(tokenizer.pieces[id])) stops.push_back(static_cast<TokenId>(id));
  }
  std::sort(stops.begin(), stops.end());
  stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
  return {};
}

constexpr StoredForm kStacked = {.is_stacked = true};

// The names of expected tensors in GGUF files. Fused tensors count where a file has no separate ones.
constexpr TensorName kNames[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.embed_positions", "position_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"model.embed_tokens_per_layer", "per_layer_token_embd"},
    {"model.per_layer_model_projection", "per_layer_model_proj"},
    {"model.per_layer_projection_norm", "per_layer_proj_norm"},
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.q_proj", "attn_qkv", Piece::kQueries},
    {"self_attn.k_proj", "attn_qkv", Piece::kKeys},
    {"self_attn.v_proj", "attn_qkv", Piece::kValues},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm", Piece::kWhole, kStacked},
    {"self_attn.k_norm", "attn_k_norm", Piece::kWhole, kStacked},
    {"post_attention_layernorm", "ffn_norm"},
    {"post_self_attn_layernorm", "post_attention_norm"},
    {"post_mlp_layernorm", "post_ffw_norm"},
    {"per_layer_input_gate", "inp_gate"},
    {"per_layer_projection", "proj"},
    {"post_per_layer_input_norm", "post_norm"},
    {"layer_scalar", "layer_output_scale"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.gate_proj", "ffn_up", Piece::kGate},
    {"mlp.up_proj", "ffn_up", Piece::kUp},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate_proj", "ffn_gate_shexp"},
    {"mlp.up_proj", "ffn_up_shexp"},
    {"mlp.down_proj", "ffn_down_shexp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.choice", "exp_probs_b"},
    {"mlp.experts.gate_proj", "ffn_gate_exps", Piece::kWhole, kStacked},
    {"mlp.experts.up_proj", "ffn_up_exps", Piece::kWhole, kStacked},
    {"mlp.experts.gate_proj", "ffn_gate_up_exps", Piece::kGate, kStacked},
    {"mlp.experts.up_proj", "ffn_gate_up_exps", Piece::kUp, kStacked},
    {"mlp.experts.down_proj", "ffn_down_exps", Piece::kWhole, kStacked},
    {"self_attn.sinks", "attn_sinks"},
};

}  // namespace

Result<ModelConfig> gguf_model_config(const GgufFile& file, const TokenizerSpec& tokenizer,
                                      std::string_view name) {
  const GgufMetadata metadata(file, name);
  OUTRIDER_TRY(const auto architecture, metadata.string("general.architecture"));
  if (!architecture) return metadata.fail("general.architecture is missing");
  const ModelFamily* family = find_family(*architecture, &ModelFamily::gguf_architecture);
  if (family == nullptr || architecture->empty()) {
    return metadata.fail("architecture " + quote(*architecture) + " is not supported; " +
                         list_families(&ModelFamily::gguf_architecture, " and ") + " are");
  }
  const ArchitectureKeys keys(metadata, *architecture);
  ModelConfig config;
  config.family = family->name;
  OUTRIDER_RETURN_IF_ERROR(read_sizes(keys, &config));
  OUTRIDER_RETURN_IF_ERROR(read_traits(keys, *family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_tensor_traits(file, keys, *family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_gguf_layers(file, keys, *family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_gguf_ropes(file, keys, *family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_positions(file, keys, &config));
  OUTRIDER_RETURN_IF_ERROR(read_gguf_experts(file, keys, *family, &config));
  for (const LayerKind* kind : {family->layers, family->other_layers}) {
    if (kind != nullptr && kind->read_gguf != nullptr)
      OUTRIDER_RETURN_IF_ERROR(kind->read_gguf(keys, &config));
  }
  if (family->derive_gguf_traits != nullptr) family->derive_gguf_traits(&config);
  OUTRIDER_RETURN_IF_ERROR(read_stop_tokens(metadata, tokenizer, &config));
  if (const Status valid = validate(config); !valid.ok()) return metadata.fail(valid.error().message);
  return config;
}

std::vector<TensorName> gguf_names(const ModelFamily& family) {
  std::vector<TensorName> names(family.gguf_names.begin(), family.gguf_names.end());
  for (const TensorName& name : kNames) {
    const bool is_replaced = std::ranges::any_of(
        family.gguf_names, [&](const TensorName& own) { return own.expected == name.expected; });
    if (!is_replaced) names.push_back(name);
  }
  return names;
}

bool ends_text_by_spelling(std::string_view piece) {
  constexpr std::array<std::string_view, 8> kSpellings = {"<|eot_id|>",    "<|eom_id|>",    "<|end_of_text|>",
                                                          "<|im_end|>",    "<|endoftext|>", "<|end|>",
                                                          "<end_of_turn>", "<turn|>"};
  return std::find(kSpellings.begin(), kSpellings.end(), piece) != kSpellings.end();
}

}  // namespace outrider
