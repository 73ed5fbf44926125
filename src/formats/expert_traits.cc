// SPDX-License-Identifier: Apache-2.0
#include "formats/expert_traits.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/quote.h"
#include "formats/family_traits.h"

namespace outrider {
namespace {

using LayerRule = std::function<bool(int64_t layer)>;

bool every_layer(int64_t) { return true; }

// Reads the numbers of experts; transformers has two names for the first.
Status read_counts(const JsonObject& root, ModelConfig* config) {
  const std::string_view key = root.contains("num_experts") ? "num_experts" : "num_local_experts";
  OUTRIDER_TRY(config->experts.count, root.require_integer(key));
  OUTRIDER_TRY(config->experts.used, root.require_integer("num_experts_per_tok"));
  return {};
}

// Gives experts to the layers of a rule, beside a dense MLP of that size; 0: without one.
void place_experts(const LayerRule& has_experts, int64_t dense_size, ModelConfig* config) {
  constexpr int64_t kMaxLayers = 1024;  // validate() has the message for more
  std::vector<LayerTraits> layers =
      config->listed_traits(std::clamp<int64_t>(config->layer_count, 0, kMaxLayers));
  for (int64_t i = 0; i < std::ssize(layers); ++i) {
    if (!has_experts(i)) continue;
    LayerTraits& layer = layers[static_cast<size_t>(i)];
    layer.mlp = dense_size == 0 ? &kExpertsKind : &kExpertsAndDenseKind;
    layer.ffn_size = dense_size;
  }
  config->set_layer_traits(std::move(layers));
}

// Every layer has experts of the model's feed-forward size, beside a dense MLP of that size; 0: without one.
Status read_uniform_experts(const JsonObject& root, int64_t dense_size, ModelConfig* config) {
  OUTRIDER_RETURN_IF_ERROR(read_counts(root, config));
  config->experts.ffn_size = config->ffn_size;
  place_experts(every_layer, dense_size, config);
  return {};
}

Status read_norm_of_chosen(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(const bool normalizes, flag(root, "norm_topk_prob", false));
  config->experts.weights = normalizes ? RouterWeights::kSoftmaxOfChosen : RouterWeights::kSoftmax;
  return {};
}

// The layer numbers of a list; an absent list has none.
Result<std::vector<int64_t>> read_layers(const JsonObject& root, std::string_view key) {
  OUTRIDER_TRY(const auto list, root.array(key));
  std::vector<int64_t> layers;
  if (!list) return layers;
  for (const simdjson::dom::element element : *list) {
    int64_t layer = 0;
    if (element.get(layer) != simdjson::SUCCESS) return root.wrong_type(key, "a list of layer numbers");
    layers.push_back(layer);
  }
  return layers;
}

bool contains(const std::vector<int64_t>& layers, int64_t layer) {
  return std::ranges::find(layers, layer) != layers.end();
}

// Error: the key has another value than the only one that is supported.
Status expect_number(const JsonObject& root, std::string_view key, float expected) {
  OUTRIDER_TRY(const auto found, root.number(key));
  if (!found || static_cast<float>(*found) == expected) return {};
  return root.fail(quote(key) + " must be " + std::to_string(expected) + ", found " + std::to_string(*found));
}

// Which layers have experts: all from `first_k_dense_replace` on, or the layers that a list calls sparse.
Result<LayerRule> read_sparse_layers(const JsonObject& root) {
  OUTRIDER_TRY(const auto dense, root.integer("first_k_dense_replace"));
  OUTRIDER_TRY(const auto types, root.array("mlp_layer_types"));
  if (!types) return LayerRule([first = dense.value_or(1)](int64_t layer) { return layer >= first; });
  std::vector<int64_t> sparse;
  int64_t layer = 0;
  for (const simdjson::dom::element element : *types) {
    std::string_view type;
    if (element.get(type) != simdjson::SUCCESS || (type != "dense" && type != "sparse"))
      return root.wrong_type("mlp_layer_types", "a list of dense and sparse");
    if (type == "sparse") sparse.push_back(layer);
    ++layer;
  }
  return LayerRule([sparse = std::move(sparse)](int64_t of) { return contains(sparse, of); });
}

// Layers with RoPE see chunks of that many positions.
void set_chunks(int64_t chunk, ModelConfig* config) {
  for (LayerTraits& layer : config->layer_traits)
    layer.chunk = layer.rope == LayerTraits::kNoRope ? 0 : chunk;
}

}  // namespace

Status read_mixtral_traits(const JsonObject& root, ModelConfig* config) {
  return read_uniform_experts(root, 0, config);
}

Status read_qwen_moe_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_RETURN_IF_ERROR(refuse(root, "use_sliding_window"));
  OUTRIDER_RETURN_IF_ERROR(read_counts(root, config));
  OUTRIDER_TRY(config->experts.ffn_size, root.require_integer("moe_intermediate_size"));
  OUTRIDER_RETURN_IF_ERROR(read_norm_of_chosen(root, config));
  OUTRIDER_TRY(const auto shared, root.integer("shared_expert_intermediate_size"));
  OUTRIDER_TRY(const auto step, root.integer("decoder_sparse_step"));
  OUTRIDER_TRY(const std::vector<int64_t> dense, read_layers(root, "mlp_only_layers"));
  const int64_t period = step.value_or(1);
  if (period < 1) return root.fail("'decoder_sparse_step' must be positive, found " + std::to_string(period));
  config->experts.gates_dense = shared.value_or(0) != 0;
  place_experts([&](int64_t layer) { return (layer + 1) % period == 0 && !contains(dense, layer); },
                shared.value_or(0), config);
  return {};
}

Status read_olmoe_traits(const JsonObject& root, ModelConfig* config) {
  if (root.find("clip_qkv")) return root.fail("'clip_qkv' is not supported; null is");
  OUTRIDER_RETURN_IF_ERROR(read_norm_of_chosen(root, config));
  return read_uniform_experts(root, 0, config);
}

Status read_gpt_oss_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_RETURN_IF_ERROR(expect_number(root, "swiglu_limit", kSwigluLimit));
  OUTRIDER_RETURN_IF_ERROR(expect_number(root, "swiglu_alpha", kSwigluAlpha));
  OUTRIDER_TRY(const bool bias, flag(root, "attention_bias", true));
  config->qkv_bias = config->output_bias = bias;
  config->mlp.activation = Activation::kClampedSwiglu;  // whatever "hidden_act" says
  config->attention_sinks = true;
  return read_uniform_experts(root, 0, config);
}

Status read_granite_moe_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(const auto shared, root.integer("shared_intermediate_size"));
  OUTRIDER_RETURN_IF_ERROR(read_uniform_experts(root, shared.value_or(0), config));
  return read_granite_traits(root, config);
}

Status read_granite_hybrid_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(const auto types, root.array("layer_types"));
  if (!types) return root.fail("'layer_types' is missing; models of attention layers alone are supported");
  for (const simdjson::dom::element element : *types) {
    std::string_view type;
    if (element.get(type) != simdjson::SUCCESS) return root.wrong_type("layer_types", "a list of strings");
    if (type != "attention" && type != "full_attention")  // transformers has both names
      return root.fail("layer type " + quote(type) + " is not supported; attention is");
  }
  OUTRIDER_TRY(const auto positions, root.string("position_embedding_type"));
  if (positions.value_or("nope") != "rope") {
    for (LayerTraits& layer : config->layer_traits) layer.rope = LayerTraits::kNoRope;
  }
  OUTRIDER_TRY(const auto experts, root.integer("num_local_experts"));
  if (experts.value_or(8) != 0) {
    OUTRIDER_RETURN_IF_ERROR(read_counts(root, config));
    OUTRIDER_TRY(config->experts.ffn_size, root.require_integer("intermediate_size"));
    place_experts(every_layer, config->ffn_size, config);
  }
  return read_granite_traits(root, config);
}

Status read_glm4_moe_traits(const JsonObject& root, ModelConfig* config) {
  ExpertTraits& experts = config->experts;
  const std::string_view key = root.contains("n_routed_experts") ? "n_routed_experts" : "num_local_experts";
  OUTRIDER_TRY(experts.count, root.require_integer(key));
  OUTRIDER_TRY(experts.used, root.require_integer("num_experts_per_tok"));
  OUTRIDER_TRY(experts.ffn_size, root.require_integer("moe_intermediate_size"));
  OUTRIDER_TRY(const auto groups, root.integer("n_group"));
  OUTRIDER_TRY(const auto used_groups, root.integer("topk_group"));
  experts.groups = groups.value_or(1);
  experts.used_groups = used_groups.value_or(1);
  OUTRIDER_TRY(const auto scale, root.number("routed_scaling_factor"));
  experts.scale = scale.value_or(1);
  OUTRIDER_TRY(const bool normalizes, flag(root, "norm_topk_prob", true));
  if (!normalizes) experts.weights = RouterWeights::kSigmoid;
  OUTRIDER_TRY(const bool norms_heads, flag(root, "use_qk_norm", false));
  if (norms_heads) config->qk_norm = QkNorm::kHead;
  OUTRIDER_TRY(const auto shared, root.integer("n_shared_experts"));
  OUTRIDER_TRY(const LayerRule is_sparse, read_sparse_layers(root));
  constexpr int64_t kMost = int64_t{1} << 22;  // validate() has the message for larger sizes
  const int64_t shared_size =
      std::clamp<int64_t>(shared.value_or(1), 0, kMost) * std::clamp<int64_t>(experts.ffn_size, 0, kMost);
  place_experts(is_sparse, shared_size, config);
  return {};
}

Status read_llama4_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_RETURN_IF_ERROR(read_counts(root, config));
  OUTRIDER_TRY(config->experts.ffn_size, root.require_integer("intermediate_size"));
  OUTRIDER_TRY(const auto step, root.integer("interleave_moe_layer_step"));
  OUTRIDER_TRY(const std::vector<int64_t> listed, read_layers(root, "moe_layers"));
  const int64_t period = step.value_or(1);
  if (period < 1)
    return root.fail("'interleave_moe_layer_step' must be positive, found " + std::to_string(period));
  const bool is_listed = root.find("moe_layers").has_value();
  place_experts(
      [&](int64_t layer) { return is_listed ? contains(listed, layer) : (layer + 1) % period == 0; },
      config->experts.ffn_size, config);
  OUTRIDER_TRY(const bool norms_heads, flag(root, "use_qk_norm", true));
  config->qk_norm = norms_heads ? QkNorm::kPlain : QkNorm::kNone;
  OUTRIDER_TRY(const bool grows, flag(root, "attn_temperature_tuning", true));
  OUTRIDER_TRY(const auto beta, root.number("attn_scale"));
  OUTRIDER_TRY(const auto floor_scale, root.integer("floor_scale"));
  config->query_temperature = {.beta = grows ? beta.value_or(0.1) : 0,
                               .original_context = floor_scale.value_or(8192),
                               .offset = 1,
                               .without_rope = true};
  OUTRIDER_TRY(const auto chunk, root.integer("attention_chunk_size"));
  set_chunks(chunk.value_or(root.contains("attention_chunk_size") ? 0 : 8192), config);
  return {};
}

void derive_gguf_gpt_oss_traits(ModelConfig* config) {
  for (RopeTraits& rope : config->ropes) rope.scaling.truncates_range = false;
}

void derive_gguf_llama4_traits(ModelConfig* config) {
  constexpr int64_t kMaverickExperts = 128;  // of the one model that does not normalise heads
  if (config->experts.count == kMaverickExperts) config->qk_norm = QkNorm::kNone;
  config->query_temperature = {.beta = 0.1, .original_context = 8192, .offset = 1, .without_rope = true};
  set_chunks(8192, config);
}

}  // namespace outrider
