// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "outrider/result.h"
#include "outrider/sampling_params.h"
#include "outrider/token.h"
#include "tensor/activation.h"

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

enum class NormKind : uint8_t { kRms, kLayer };

// Where the norms of a layer stand, f being its attention or its MLP.
enum class NormPlacement : uint8_t {
  kInput,   // x + f(norm(x))
  kOutput,  // x + norm(f(x))
  kBoth,    // x + norm(f(norm(x)))
};

struct NormTraits {
  NormKind kind = NormKind::kRms;
  NormPlacement placement = NormPlacement::kInput;
  float epsilon = 1e-5f;
  bool adds_one = false;  // stored weights w stand for a scale of 1 + w
};

// Norms of queries and keys before RoPE, of the kind of the other norms and without bias.
enum class QkNorm : uint8_t {
  kNone,
  kHead,   // of every attention head, with one weight [head_dim] for all
  kWhole,  // of all heads together, weight [heads * head_dim]
};

struct MlpTraits {
  Activation activation = Activation::kSilu;
  bool is_gated = true;  // down(act(gate(x)) * up(x)); else down(act(up(x)))
  bool bias = false;
};

// Constant factors.
struct ScaleTraits {
  double embedding = 1;  // of the rows of the embedding table
  double residual = 1;   // of what attention and MLP add to the residual stream
  double attention = 0;  // of the scores; 0: 1 / sqrt(head_dim)
  double logits = 1;
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
  NormTraits norm;
  MlpTraits mlp;
  ScaleTraits scales;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  int64_t sliding_window = 0;  // a row sees the last `sliding_window` positions, itself included; 0: all
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool output_bias = false;  // bias of the attention output projection
  QkNorm qk_norm = QkNorm::kNone;
  // Recommendations of generation_config.json or of GGUF metadata.
  std::vector<TokenId> stop_tokens;  // end-of-text ids
  SamplingChoices sampling;          // from generation_config.json alone

  // The weights of a norm over that many heads of queries or keys.
  int64_t qk_norm_size(int64_t heads) const {
    return qk_norm == QkNorm::kWhole ? heads * head_dim : head_dim;
  }
};

// Checks that the numbers are positive, within limits, and consistent with one another.
Status validate(const ModelConfig& config);

}  // namespace outrider
