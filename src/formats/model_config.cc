// SPDX-License-Identifier: Apache-2.0
#include "formats/model_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/portable_math.h"
#include "formats/number_limit.h"

namespace outrider {
namespace {

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

Status check_divisors(const std::vector<float>& divisors, int64_t expected) {
  if (static_cast<int64_t>(divisors.size()) != expected) {
    return input_error("model configuration: expected " + std::to_string(expected) +
                       " RoPE frequency divisors, found " + std::to_string(divisors.size()));
  }
  for (const float divisor : divisors) {
    if (!is_positive(divisor))
      return input_error("model configuration: a RoPE frequency divisor is not positive");
  }
  return {};
}

Status validate_scaling(const RopeScaling& scaling, int64_t frequencies) {
  if (!is_positive(scaling.factor))
    return input_error("model configuration: the RoPE factor must be positive");
  if (!is_positive(scaling.attention_factor))
    return input_error("model configuration: the attention factor of RoPE scaling must be positive");
  OUTRIDER_RETURN_IF_ERROR(
      check_limit({"the original context of RoPE scaling", scaling.original_context, 1, int64_t{1} << 30}));
  const bool is_ordered = is_positive(scaling.low_freq_factor) && is_positive(scaling.high_freq_factor) &&
                          scaling.low_freq_factor < scaling.high_freq_factor;
  if (scaling.kind == RopeScalingKind::kLlama3 && !is_ordered)
    return input_error("model configuration: RoPE scaling needs 0 < low_freq_factor < high_freq_factor");
  if (!is_positive(scaling.beta_slow) || !is_positive(scaling.beta_fast) ||
      scaling.beta_slow > scaling.beta_fast) {
    return input_error("model configuration: RoPE scaling needs 0 < beta_slow <= beta_fast");
  }
  if (scaling.kind == RopeScalingKind::kLongRope)
    OUTRIDER_RETURN_IF_ERROR(check_divisors(scaling.long_divisors, frequencies));
  if (scaling.kind != RopeScalingKind::kLongRope && scaling.frequency_divisors.empty()) return {};
  return check_divisors(scaling.frequency_divisors, frequencies);
}

Status validate_rope(const RopeTraits& rope, int64_t head_dim) {
  if (!std::isfinite(rope.theta) || rope.theta <= 1)
    return input_error("model configuration: the RoPE base must be above 1");
  OUTRIDER_RETURN_IF_ERROR(check_limit({"the rotated part of a head", rope.rotated_dim, 0, head_dim}));
  const int64_t rotated = rope.rotated_dim != 0 ? rope.rotated_dim : head_dim;
  if (rotated % 2 != 0) {
    return input_error("model configuration: the rotated part of a head must be even, found " +
                       std::to_string(rotated));
  }
  if (!(rope.turning_part > 0 && rope.turning_part <= 1))
    return input_error("model configuration: the part of turning frequencies must be above 0 and at most 1");
  if (rope.scaling.kind == RopeScalingKind::kDynamic && rotated == 2)
    return input_error("model configuration: dynamic RoPE scaling needs more than 2 rotated numbers");
  return validate_scaling(rope.scaling, rotated / 2);
}

Status check_sizes(const LayerSizes& sizes) {
  const NumberLimit limits[] = {{"the number of heads", sizes.head_count, 1, 4096},
                                {"the number of key-value heads", sizes.kv_head_count, 1, sizes.head_count},
                                {"the head size", sizes.head_dim, 2, 1024},
                                {"the feed-forward size", sizes.ffn_size, 1, int64_t{1} << 22}};
  OUTRIDER_RETURN_IF_ERROR(check_limits(limits));
  if (sizes.head_count % sizes.kv_head_count != 0) {
    return input_error("model configuration: " + std::to_string(sizes.head_count) +
                       " heads cannot be shared evenly by " + std::to_string(sizes.kv_head_count) +
                       " key-value heads");
  }
  if (sizes.head_dim % 2 == 0) return {};
  return input_error("model configuration: the head size must be even, found " +
                     std::to_string(sizes.head_dim));
}

// A layer reads the keys and values of an earlier one that has its own, and the same heads.
Status check_kv_layer(const ModelConfig& config, int64_t layer) {
  const int64_t from = config.kv_layer_of(layer);
  if (from == layer) return {};
  OUTRIDER_RETURN_IF_ERROR(
      check_limit({"the layer whose keys and values another reads", from, 0, layer - 1}));
  if (config.has_keys(from) && config.has_attention(layer) &&
      config.sizes_of(from).kv_size() == config.sizes_of(layer).kv_size())
    return {};
  return input_error("model configuration: layer " + std::to_string(layer) +
                     " cannot read the keys and values of layer " + std::to_string(from));
}

Status validate_layers(const ModelConfig& config) {
  const auto ropes = static_cast<int64_t>(config.ropes.size());
  for (int64_t i = 0; i < std::ssize(config.layer_traits); ++i) {
    const LayerTraits& layer = config.traits_of(i);
    OUTRIDER_RETURN_IF_ERROR(check_limit({"the sliding window", layer.window, 0, int64_t{1} << 30}));
    OUTRIDER_RETURN_IF_ERROR(check_limit({"the chunk of attention", layer.chunk, 0, int64_t{1} << 30}));
    for (const LayerKind* kind : {layer.mlp, layer.kind}) {
      if (kind->validate != nullptr) OUTRIDER_RETURN_IF_ERROR(kind->validate(config));
    }
    OUTRIDER_RETURN_IF_ERROR(
        check_limit({"the number of a layer's RoPE", layer.rope, LayerTraits::kNoRope, ropes - 1}));
    OUTRIDER_RETURN_IF_ERROR(check_sizes(config.sizes_of(i)));
    OUTRIDER_RETURN_IF_ERROR(check_kv_layer(config, i));
    if (layer.rope == LayerTraits::kNoRope) continue;
    OUTRIDER_RETURN_IF_ERROR(
        validate_rope(config.ropes[static_cast<size_t>(layer.rope)], config.sizes_of(i).head_dim));
  }
  return {};
}

Status validate_attention(const ModelConfig& config) {
  OUTRIDER_RETURN_IF_ERROR(validate_layers(config));
  OUTRIDER_RETURN_IF_ERROR(
      check_limit({"the size of layer inputs", config.layer_inputs.size, 0, int64_t{1} << 20}));
  if (config.layer_inputs.size != 0) {
    OUTRIDER_RETURN_IF_ERROR(check_limit({"the vocabulary of layer inputs", config.layer_inputs.vocab_size,
                                          config.vocab_size, int64_t{1} << 22}));
  }
  for (const double value : {config.attention_softcap, config.logit_softcap, config.query_temperature.beta}) {
    if (!std::isfinite(value) || value < 0)
      return input_error("model configuration: soft caps and temperatures must be zero or positive");
  }
  return check_limit({"the original context of query temperatures", config.query_temperature.original_context,
                      1, int64_t{1} << 30});
}

Status validate_positions(const ModelConfig& config) {
  const LearnedPositions& learned = config.learned_positions;
  OUTRIDER_RETURN_IF_ERROR(
      check_limit({"the number of learned positions", learned.count, 0, int64_t{1} << 24}));
  OUTRIDER_RETURN_IF_ERROR(check_limit({"the offset of learned positions", learned.offset, 0, 1024}));
  if (learned.count > 0 && config.max_context > learned.count) {
    return input_error("model configuration: a context of " + std::to_string(config.max_context) +
                       " tokens needs as many learned positions, found " + std::to_string(learned.count));
  }
  if (config.alibi_slopes.empty() || std::ssize(config.alibi_slopes) == config.head_count) return {};
  return input_error("model configuration: ALiBi needs a slope for each of " +
                     std::to_string(config.head_count) + " heads, found " +
                     std::to_string(config.alibi_slopes.size()));
}

}  // namespace

std::vector<LayerTraits> ModelConfig::listed_traits(int64_t layers) const {
  std::vector<LayerTraits> listed;
  for (int64_t i = 0; i < layers; ++i) listed.push_back(traits_of(i));
  return listed;
}

void ModelConfig::set_layer_traits(std::vector<LayerTraits> layers) {
  if (layers.empty()) return;
  if (std::ranges::all_of(layers, [&](const LayerTraits& layer) { return layer == layers.front(); }))
    layers.resize(1);
  layer_traits = std::move(layers);
}

LayerSizes ModelConfig::sizes_of(int64_t layer) const {
  const LayerTraits& traits = traits_of(layer);
  return {.head_count = head_count,
          .kv_head_count = traits.kv_head_count != 0 ? traits.kv_head_count : kv_head_count,
          .head_dim = traits.head_dim != 0 ? traits.head_dim : head_dim,
          .ffn_size = traits.ffn_size != 0 ? traits.ffn_size : ffn_size};
}

int64_t ModelConfig::kv_layer_of(int64_t layer) const {
  const int64_t kv_layer = traits_of(layer).kv_layer;
  if (kv_layer == LayerTraits::kOwn) return layer;
  const auto period = static_cast<int64_t>(layer_traits.size());
  return layer / period * period + kv_layer;
}

std::vector<float> alibi_slopes(int64_t head_count, double max_bias) {
  int64_t power = 1;
  while (2 * power <= head_count) power *= 2;
  std::vector<float> slopes;
  for (int64_t head = 0; head < head_count; ++head) {
    const double steps =
        head < power ? static_cast<double>(head + 1) : static_cast<double>(head - power) + 0.5;
    const double exponent = -max_bias * steps / static_cast<double>(power);
    slopes.push_back(static_cast<float>(portable_exp(exponent * std::numbers::ln2)));
  }
  return slopes;
}

Status validate(const ModelConfig& config) {
  const NumberLimit limits[] = {
      {"the vocabulary size", config.vocab_size, 1, int64_t{1} << 22},
      {"the hidden size", config.hidden_size, 1, int64_t{1} << 20},
      {"the number of layers", config.layer_count, 1, 1024},
      {"the size of embeddings", config.token_size(), 1, int64_t{1} << 20},
      {"the context length", config.max_context, 1, int64_t{1} << 30},
  };
  OUTRIDER_RETURN_IF_ERROR(check_limits(limits));
  OUTRIDER_RETURN_IF_ERROR(check_sizes({.head_count = config.head_count,
                                        .kv_head_count = config.kv_head_count,
                                        .head_dim = config.head_dim,
                                        .ffn_size = config.ffn_size}));
  if (!is_positive(config.norm.epsilon) || config.norm.epsilon >= 1.0f) {
    return input_error("model configuration: the epsilon of norms must be between 0 and 1");
  }
  const ScaleTraits& scales = config.scales;
  if (!is_positive(scales.embedding) || !is_positive(scales.residual) || !is_positive(scales.logits) ||
      (scales.attention != 0 && !is_positive(scales.attention))) {
    return input_error(
        "model configuration: the factors of embedding, residual, attention and logits must be positive");
  }
  for (const TokenId token : config.stop_tokens) {
    OUTRIDER_RETURN_IF_ERROR(check_limit({"an end-of-text id", token, 0, config.vocab_size - 1}));
  }
  OUTRIDER_RETURN_IF_ERROR(validate_positions(config));
  return validate_attention(config);
}

}  // namespace outrider
