// SPDX-License-Identifier: Apache-2.0
#include "formats/layer_kind.h"
#include "formats/tensor_list.h"

namespace outrider {
namespace {

void append_head_norm(const ModelConfig& config, const std::string& name, int64_t heads, int64_t head_dim,
                      TensorList& list) {
  if (!config.has_qk_weights()) return;
  if (config.qk_norm != QkNorm::kEach) return list.vector(name, config.qk_norm_size(heads, head_dim));
  for (int64_t head = 0; head < heads; ++head) list.vector(name + "." + std::to_string(head), head_dim);
}

void append_attention(const ModelConfig& config, int64_t layer, const std::string& prefix, TensorList& list) {
  const std::string attention = prefix + "self_attn.";
  const int64_t hidden = config.hidden_size;
  const LayerSizes sizes = config.sizes_of(layer);
  const bool has_keys = config.has_keys(layer);
  list.matrix(attention + "q_proj", sizes.q_size(), hidden, config.qkv_bias);
  if (config.gates_attention) list.matrix(attention + "gate_proj", sizes.q_size(), hidden);
  append_head_norm(config, attention + "q_norm", sizes.head_count, sizes.head_dim, list);
  if (has_keys) {
    list.matrix(attention + "k_proj", sizes.kv_size(), hidden, config.qkv_bias);
    append_head_norm(config, attention + "k_norm", sizes.kv_head_count, sizes.head_dim, list);
  }
  if (has_keys && !config.traits_of(layer).values_are_keys)
    list.matrix(attention + "v_proj", sizes.kv_size(), hidden, config.qkv_bias);
  list.matrix(attention + "o_proj", hidden, sizes.q_size(), config.output_bias);
  if (config.attention_sinks) list.vector(attention + "sinks", sizes.head_count);
}

}  // namespace

constinit const LayerKind kAttentionKind = {
    .name = "attention", .reads_entries = true, .append_tensors = append_attention};

}  // namespace outrider
