// SPDX-License-Identifier: Apache-2.0
#include "formats/kinds/delta_net.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "formats/expert_traits.h"
#include "formats/family_traits.h"
#include "formats/gguf/architecture_keys.h"
#include "formats/kinds/layer_list.h"
#include "formats/number_limit.h"
#include "formats/tensor_list.h"

namespace outrider {
namespace {

void append_delta_net(const ModelConfig& config, int64_t /*layer*/, const std::string& prefix,
                      TensorList& list) {
  const int64_t hidden = config.hidden_size;
  const DeltaTraits& delta = config.of_kinds.of<DeltaTraits>();
  const std::string name = prefix + "linear_attn.";
  list.matrix(name + "in_proj_qkv", delta.conv_size(), hidden);
  list.matrix(name + "in_proj_b", delta.value_heads, hidden);
  list.matrix(name + "in_proj_a", delta.value_heads, hidden);
  list.matrix(name + "in_proj_z", delta.value_size(), hidden);
  list.numbers(name + "conv1d", delta.conv_size(), delta.taps);
  list.bias(name + "dt", delta.value_heads);
  list.vector(name + "decay", delta.value_heads);
  list.vector(name + "norm", delta.value_dim);
  list.matrix(name + "out_proj", hidden, delta.value_size());
}

Status validate_delta(const ModelConfig& config) {
  const DeltaTraits& delta = config.of_kinds.of<DeltaTraits>();
  const NumberLimit limits[] = {{"the taps of delta nets", delta.taps, 2, 64},
                                {"the key heads of delta nets", delta.key_heads, 1, 4096},
                                {"the value heads of delta nets", delta.value_heads, delta.key_heads, 4096},
                                {"the key size of delta nets", delta.key_dim, 1, 1024},
                                {"the value size of delta nets", delta.value_dim, 1, 1024}};
  OUTRIDER_RETURN_IF_ERROR(check_limits(limits));
  if (delta.value_heads % delta.key_heads == 0) return {};
  return input_error("model configuration: " + std::to_string(delta.value_heads) +
                     " value heads of delta nets cannot share evenly " + std::to_string(delta.key_heads) +
                     " key heads");
}

// Files hold the negative decay, and value heads in the order of the key heads that they read, repeated.
Status read_gguf_delta(const ArchitectureKeys& keys, ModelConfig* config) {
  DeltaTraits& delta = config->of_kinds.edit<DeltaTraits>();
  OUTRIDER_TRY(delta.taps, keys.require_integer("ssm.conv_kernel"));
  OUTRIDER_TRY(delta.key_dim, keys.require_integer("ssm.state_size"));
  OUTRIDER_TRY(delta.key_heads, keys.require_integer("ssm.group_count"));
  OUTRIDER_TRY(delta.value_heads, keys.require_integer("ssm.time_step_rank"));
  OUTRIDER_TRY(const int64_t value_size, keys.require_integer("ssm.inner_size"));
  delta.value_dim = delta.value_heads < 1 ? 0 : value_size / delta.value_heads;
  delta.interleaves_keys = true;
  config->gates_attention = true;
  return {};
}

// The layers that the file lists, or all but every n-th.
Result<std::vector<bool>> find_gguf_delta(const ArchitectureKeys& keys, size_t layers) {
  OUTRIDER_TRY(std::vector<bool> listed, keys.booleans("attention.recurrent_layers"));
  if (listed.size() == layers) return listed;
  OUTRIDER_TRY(const auto stated, keys.integer("full_attention_interval"));
  const int64_t period = std::max<int64_t>(stated.value_or(4), 1);
  listed.resize(layers);
  for (size_t i = 0; i < layers; ++i) listed[i] = (static_cast<int64_t>(i) + 1) % period != 0;
  return listed;
}

void set_published_delta(ModelConfig* config) {
  config->gates_attention = true;
  config->of_kinds.edit<DeltaTraits>() = {
      .taps = 4, .key_heads = 16, .value_heads = 32, .key_dim = 128, .value_dim = 128, .has_logs = true};
}

// Number `at` of a part of a fused matrix: groups of `size` rows, `step` apart, from row `first` on.
int64_t place(int64_t at, int64_t size, int64_t step, int64_t first) {
  return at / size * step + first + at % size;
}

// Copies `count` rows, row i from row_of(i). Error: the fused matrix has another number of rows.
Result<TensorView> cut_rows(const FusedTensor& fused, int64_t expected, int64_t count,
                            const std::function<int64_t(int64_t)>& row_of, ModelStorage* storage) {
  const TensorView& view = fused.view;
  if (view.shape.size() != 2 || view.rows() != expected)
    return input_error("tensor " + fused.name + ": expected " + std::to_string(expected) +
                       " rows by the model's configuration");
  return copy_rows(view, count, row_of, storage);
}

// Each key head has its queries, its keys, its values and its gates.
struct FusedInputs {
  explicit FusedInputs(const DeltaTraits& delta)
      : keys(delta.key_heads * delta.key_dim),
        dim(delta.key_dim),
        values(delta.values_per_key() * delta.value_dim),
        stride(2 * dim + 2 * values),
        rows(delta.conv_size() + delta.value_size()) {}

  int64_t keys, dim, values, stride, rows;
};

// Each key head has its rates and its times.
Result<TensorView> cut_heads_of_values(const FusedTensor& fused, const DeltaTraits& delta, int64_t first,
                                       ModelStorage* storage) {
  const int64_t each = delta.values_per_key();
  return cut_rows(
      fused, 2 * delta.value_heads, delta.value_heads,
      [&](int64_t row) { return place(row, each, 2 * each, first); }, storage);
}

}  // namespace

constinit const LayerKind kDeltaNetKind = {.name = "delta_net",
                                           .validate = validate_delta,
                                           .append_tensors = append_delta_net,
                                           .read_gguf = read_gguf_delta,
                                           .find_gguf_layers = find_gguf_delta,
                                           .set_published = set_published_delta};

Result<TensorView> cut_delta_inputs(const FusedTensor& fused, const ModelConfig& config,
                                    ModelStorage* storage) {
  const DeltaTraits& delta = config.of_kinds.of<DeltaTraits>();
  const FusedInputs in(delta);
  const auto row_of = [&](int64_t row) {
    if (row < in.keys) return place(row, in.dim, in.stride, 0);
    if (row < 2 * in.keys) return place(row - in.keys, in.dim, in.stride, in.dim);
    return place(row - 2 * in.keys, in.values, in.stride, 2 * in.dim);
  };
  return cut_rows(fused, in.rows, delta.conv_size(), row_of, storage);
}

Result<TensorView> cut_delta_gates(const FusedTensor& fused, const ModelConfig& config,
                                   ModelStorage* storage) {
  const DeltaTraits& delta = config.of_kinds.of<DeltaTraits>();
  const FusedInputs in(delta);
  return cut_rows(
      fused, in.rows, delta.value_size(),
      [&](int64_t row) { return place(row, in.values, in.stride, 2 * in.dim + in.values); }, storage);
}

Result<TensorView> cut_delta_rates(const FusedTensor& fused, const ModelConfig& config,
                                   ModelStorage* storage) {
  return cut_heads_of_values(fused, config.of_kinds.of<DeltaTraits>(), 0, storage);
}

Result<TensorView> cut_delta_times(const FusedTensor& fused, const ModelConfig& config,
                                   ModelStorage* storage) {
  const DeltaTraits& delta = config.of_kinds.of<DeltaTraits>();
  return cut_heads_of_values(fused, delta, delta.values_per_key(), storage);
}

Status read_qwen35_traits(const JsonObject& root, ModelConfig* config) {
  constexpr int64_t kMaxLayers = 1024;  // validate() has the message for more
  OUTRIDER_RETURN_IF_ERROR(refuse(root, "attention_bias"));
  OUTRIDER_TRY(const auto taps, root.integer("linear_conv_kernel_dim"));
  OUTRIDER_TRY(const auto key_heads, root.integer("linear_num_key_heads"));
  OUTRIDER_TRY(const auto value_heads, root.integer("linear_num_value_heads"));
  OUTRIDER_TRY(const auto key_dim, root.integer("linear_key_head_dim"));
  OUTRIDER_TRY(const auto value_dim, root.integer("linear_value_head_dim"));
  config->of_kinds.edit<DeltaTraits>() = {.taps = taps.value_or(4),
                                          .key_heads = key_heads.value_or(16),
                                          .value_heads = value_heads.value_or(32),
                                          .key_dim = key_dim.value_or(128),
                                          .value_dim = value_dim.value_or(128),
                                          .has_logs = true};
  config->gates_attention = true;
  OUTRIDER_TRY(std::vector<bool> attends, read_attention_types(root, "linear_attention"));
  if (attends.empty()) {
    OUTRIDER_TRY(const auto stated, root.integer("full_attention_interval"));
    const int64_t period = stated.value_or(4);
    if (period < 1) return root.fail("'full_attention_interval' must be positive");
    if (config->layer_count > kMaxLayers) return {};
    for (int64_t i = 1; i <= config->layer_count; ++i) attends.push_back(i % period == 0);
  }
  return set_layer_kinds(root, attends, kDeltaNetKind, config);
}

Status read_qwen3_next_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_RETURN_IF_ERROR(read_qwen35_traits(root, config));
  return read_qwen_moe_traits(root, config);
}

void derive_gguf_qwen3_next_traits(ModelConfig* config) {
  config->of_kinds.edit<DeltaTraits>().interleaves_keys = false;
}

Status read_qwen35_moe_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_RETURN_IF_ERROR(read_qwen35_traits(root, config));
  OUTRIDER_RETURN_IF_ERROR(read_qwen_moe_traits(root, config));
  config->experts.weights = RouterWeights::kSoftmaxOfChosen;
  return {};
}

}  // namespace outrider
