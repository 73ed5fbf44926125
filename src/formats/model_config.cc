// SPDX-License-Identifier: Apache-2.0
#include "formats/model_config.h"

#include <cmath>

namespace outrider {
namespace {

struct Limit {
  const char* name;
  int64_t value;
  int64_t min;
  int64_t max;
};

Status check_limit(const Limit& limit) {
  if (limit.value >= limit.min && limit.value <= limit.max) return {};
  return input_error("model configuration: " + std::string(limit.name) + " must be from " +
                     std::to_string(limit.min) + " to " + std::to_string(limit.max) + ", found " +
                     std::to_string(limit.value));
}

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

Status validate_rope(const ModelConfig& config) {
  if (!is_positive(config.rope_theta))
    return input_error("model configuration: the RoPE base must be positive");
  const RopeScaling& scaling = config.rope_scaling;
  if (!is_positive(scaling.factor))
    return input_error("model configuration: the RoPE factor must be positive");
  if (scaling.kind == RopeScalingKind::kLlama3) {
    if (!is_positive(scaling.low_freq_factor) || !is_positive(scaling.high_freq_factor) ||
        scaling.low_freq_factor >= scaling.high_freq_factor) {
      return input_error("model configuration: RoPE scaling needs 0 < low_freq_factor < high_freq_factor");
    }
    OUTRIDER_RETURN_IF_ERROR(
        check_limit({"the original context of RoPE scaling", scaling.original_context, 1, int64_t{1} << 30}));
  }
  if (scaling.frequency_divisors.empty()) return {};
  if (static_cast<int64_t>(scaling.frequency_divisors.size()) != config.head_dim / 2) {
    return input_error("model configuration: expected " + std::to_string(config.head_dim / 2) +
                       " RoPE frequency divisors, found " +
                       std::to_string(scaling.frequency_divisors.size()));
  }
  for (const float divisor : scaling.frequency_divisors) {
    if (!is_positive(divisor))
      return input_error("model configuration: a RoPE frequency divisor is not positive");
  }
  return {};
}

}  // namespace

Status validate(const ModelConfig& config) {
  const Limit limits[] = {
      {"the vocabulary size", config.vocab_size, 1, int64_t{1} << 22},
      {"the hidden size", config.hidden_size, 1, int64_t{1} << 20},
      {"the number of layers", config.layer_count, 1, 1024},
      {"the number of heads", config.head_count, 1, 4096},
      {"the number of key-value heads", config.kv_head_count, 1, config.head_count},
      {"the head size", config.head_dim, 2, 1024},
      {"the feed-forward size", config.ffn_size, 1, int64_t{1} << 22},
      {"the context length", config.max_context, 1, int64_t{1} << 30},
      {"the sliding window", config.sliding_window, 0, int64_t{1} << 30},
  };
  for (const Limit& limit : limits) OUTRIDER_RETURN_IF_ERROR(check_limit(limit));
  if (config.head_count % config.kv_head_count != 0) {
    return input_error("model configuration: " + std::to_string(config.head_count) +
                       " heads cannot be shared evenly by " + std::to_string(config.kv_head_count) +
                       " key-value heads");
  }
  if (config.head_dim % 2 != 0) {
    return input_error("model configuration: the head size must be even, found " +
                       std::to_string(config.head_dim));
  }
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
  return validate_rope(config);
}

}  // namespace outrider
