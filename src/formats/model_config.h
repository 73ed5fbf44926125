// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "outrider/result.h"
#include "outrider/sampling_params.h"
#include "outrider/token.h"

namespace outrider {

enum class RopeScalingKind { kNone, kLinear, kLlama3 };

// Llama-3.1 scaling: wavelengths above original_context / low_freq_factor are divided by `factor`, those
// below original_context / high_freq_factor are kept, and those between are blended.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_context = 8192;
  // Divisors per frequency from the file itself (GGUF's rope_freqs.weight). They replace the formula when not
  // empty.
  std::vector<float> frequency_divisors;  // [head_dim / 2]
};

// The sizes and traits of a decoder-only network, independent of its file format. Only `family` is a product
// name; it names a row of formats/families.cc.
struct ModelConfig {
  std::string family;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t layer_count = 0;
  int64_t head_count = 0;
  int64_t kv_head_count = 0;
  int64_t head_dim = 0;
  int64_t ffn_size = 0;
  int64_t max_context = 0;  // positions that the model was trained for
  float rms_epsilon = 1e-5f;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  int64_t sliding_window = 0;  // a row sees the last `sliding_window` positions, itself included; 0: all
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool output_bias = false;  // bias of the attention output projection
  bool mlp_bias = false;
  bool qk_norm = false;  // RMS norm of every q and k head before RoPE
  // Recommendations of generation_config.json or of GGUF metadata.
  std::vector<TokenId> stop_tokens;  // end-of-text ids
  SamplingChoices sampling;          // from generation_config.json alone
};

// Checks that the numbers are positive, within limits, and consistent with one another.
Status validate(const ModelConfig& config);

}  // namespace outrider
