// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/json_object.h"
#include "formats/layer_kind.h"
#include "formats/stored_layout.h"

namespace outrider {

// Gated delta nets.
extern const LayerKind kDeltaNetKind;

struct DeltaTraits {
  int64_t taps = 0;  // entries of a sum of the convolution, the row's own included
  int64_t key_heads = 0;
  int64_t value_heads = 0;  // a multiple of key_heads
  int64_t key_dim = 0;      // of a head
  int64_t value_dim = 0;
  bool has_logs = false;          // files state the logarithm of the decay, else its negative
  bool interleaves_keys = false;  // value head i reads key head i modulo key_heads, else neighbours share one

  int64_t values_per_key() const { return value_heads / key_heads; }
  // The value head number `index` among the value heads that read a key head.
  int64_t value_head(int64_t key_head, int64_t index) const {
    return interleaves_keys ? index * key_heads + key_head : key_head * values_per_key() + index;
  }
  int64_t value_size() const { return value_heads * value_dim; }
  int64_t conv_size() const { return 2 * key_heads * key_dim + value_size(); }
  int64_t update_size() const { return conv_size() + 2 * value_heads; }
  int64_t state_size() const { return (taps - 1) * conv_size() + value_heads * key_dim * value_dim; }
};

Status read_qwen3_next_traits(const JsonObject& root, ModelConfig* config);
Status read_qwen35_traits(const JsonObject& root, ModelConfig* config);
Status read_qwen35_moe_traits(const JsonObject& root, ModelConfig* config);

// Traits that GGUF files leave to their reader.
void derive_gguf_qwen3_next_traits(ModelConfig* config);

// The parts of fused matrices, which have all rows of a key head together: queries, keys and values; gates of
// the output; rates; times.
Result<TensorView> cut_delta_inputs(const FusedTensor& fused, const ModelConfig& config,
                                    ModelStorage* storage);
Result<TensorView> cut_delta_gates(const FusedTensor& fused, const ModelConfig& config,
                                   ModelStorage* storage);
Result<TensorView> cut_delta_rates(const FusedTensor& fused, const ModelConfig& config,
                                   ModelStorage* storage);
Result<TensorView> cut_delta_times(const FusedTensor& fused, const ModelConfig& config,
                                   ModelStorage* storage);

}  // namespace outrider
