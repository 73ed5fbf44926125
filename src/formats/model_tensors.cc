// SPDX-License-Identifier: Apache-2.0
#include "formats/model_tensors.h"

#include <cstring>
#include <utility>

namespace outrider {
namespace {

// Adds tensors to a list.
class TensorList {
 public:
  TensorList(const ModelConfig& config, std::vector<ExpectedTensor>* list) : config_(config), list_(list) {}

  void matrix(std::string name, int64_t rows, int64_t cols, bool bias = false) {
    list_->push_back({name + ".weight", {rows, cols}});
    if (bias) list_->push_back({std::move(name) + ".bias", {rows}});
  }
  void norm(std::string name) {
    if (config_.norm.has_weight) list_->push_back({name + ".weight", {config_.hidden_size}});
    if (config_.norm.has_bias) list_->push_back({std::move(name) + ".bias", {config_.hidden_size}});
  }
  void vector(std::string name, int64_t size) { list_->push_back({std::move(name) + ".weight", {size}}); }
  void numbers(std::string name, int64_t rows, int64_t cols) {
    list_->push_back({std::move(name) + ".weight", {rows, cols}, /*is_plain=*/true});
  }
  void bias(std::string name, int64_t size) { list_->push_back({std::move(name) + ".bias", {size}}); }
  void head_norm(const std::string& name, int64_t heads, int64_t head_dim) {
    if (!config_.has_qk_weights()) return;
    if (config_.qk_norm != QkNorm::kEach) return vector(name, config_.qk_norm_size(heads, head_dim));
    for (int64_t head = 0; head < heads; ++head) vector(name + "." + std::to_string(head), head_dim);
  }

 private:
  const ModelConfig& config_;
  std::vector<ExpectedTensor>* list_;
};

// The parts after the MLP.
void append_layer_end(const ModelConfig& config, const std::string& prefix, TensorList& list) {
  const int64_t size = config.layer_inputs.size;
  if (size != 0) {
    list.matrix(prefix + "per_layer_input_gate", size, config.hidden_size);
    list.matrix(prefix + "per_layer_projection", config.hidden_size, size);
    list.vector(prefix + "post_per_layer_input_norm", config.hidden_size);
  }
  if (config.layer_scalars) list.vector(prefix + "layer_scalar", 1);
}

// One MLP; `end` follows the names of its matrices.
struct MlpNames {
  std::string begin;
  std::string end;
};

void append_mlp(const ModelConfig& config, const MlpNames& names, int64_t ffn_size, bool bias,
                TensorList& list) {
  if (config.mlp.is_gated)
    list.matrix(names.begin + "gate_proj" + names.end, ffn_size, config.hidden_size, bias);
  list.matrix(names.begin + "up_proj" + names.end, ffn_size, config.hidden_size, bias);
  list.matrix(names.begin + "down_proj" + names.end, config.hidden_size, ffn_size, bias);
}

void append_mlps(const ModelConfig& config, int64_t layer, const std::string& mlp, TensorList& list) {
  const ExpertTraits& experts = config.experts;
  if (config.has_dense_mlp(layer))
    append_mlp(config, {mlp, ""}, config.sizes_of(layer).ffn_size, config.mlp.bias, list);
  if (!config.has_experts(layer)) return;
  if (config.has_dense_mlp(layer) && experts.gates_dense)
    list.matrix(mlp + "shared_expert_gate", 1, config.hidden_size);
  if (experts.has_own_norms) {
    list.vector(mlp + "gate_norm", config.hidden_size);
    list.vector(mlp + "experts_norm", config.hidden_size);
    list.vector(mlp + "experts_output_norm", config.hidden_size);
    list.vector(mlp + "dense_output_norm", config.hidden_size);
    list.vector(mlp + "expert_scales", experts.count);
  }
  if (experts.choice_bias) list.bias(mlp + "choice", experts.count);
  list.matrix(mlp + "gate", experts.count, config.hidden_size, experts.router_bias);
  for (int64_t i = 0; i < experts.count; ++i)
    append_mlp(config, {mlp + "experts.", "." + std::to_string(i)}, experts.ffn_size, experts.bias, list);
}

void append_convolution(const ModelConfig& config, const std::string& prefix, TensorList& list) {
  const int64_t hidden = config.hidden_size;
  const std::string name = prefix + "conv.";
  list.matrix(name + "in_proj", 3 * hidden, hidden, config.convolution.bias);
  list.numbers(name + "conv", hidden, config.convolution.taps);
  if (config.convolution.bias) list.bias(name + "conv", hidden);
  list.matrix(name + "out_proj", hidden, hidden, config.convolution.bias);
}

void append_delta_net(const ModelConfig& config, const std::string& prefix, TensorList& list) {
  const int64_t hidden = config.hidden_size;
  const DeltaTraits& delta = config.delta;
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

void append_latent_attention(const ModelConfig& config, const std::string& attention, TensorList& list) {
  const LatentTraits& latent = config.latent;
  const int64_t heads = config.head_count;
  const bool has_query_vector = latent.query_rank != 0;
  if (has_query_vector) {
    list.matrix(attention + "q_a_proj", latent.query_rank, config.hidden_size);
    list.vector(attention + "q_a_layernorm", latent.query_rank);
  }
  list.matrix(attention + (has_query_vector ? "q_b_proj" : "q_proj"), heads * latent.query_dim(),
              has_query_vector ? latent.query_rank : config.hidden_size);
  list.matrix(attention + "kv_a_proj_with_mqa", latent.entry_size(), config.hidden_size);
  list.vector(attention + "kv_a_layernorm", latent.rank);
  for (int64_t head = 0; head < heads; ++head) {
    list.matrix(attention + "k_b_proj." + std::to_string(head), latent.rank, latent.plain_dim);
    list.matrix(attention + "v_b_proj." + std::to_string(head), latent.value_dim, latent.rank);
  }
  list.matrix(attention + "o_proj", config.hidden_size, heads * latent.value_dim);
}

void append_attention(const ModelConfig& config, int64_t layer, const std::string& attention,
                      TensorList& list) {
  if (config.latent.rank != 0) return append_latent_attention(config, attention, list);
  const int64_t hidden = config.hidden_size;
  const LayerSizes sizes = config.sizes_of(layer);
  const bool has_keys = config.has_keys(layer);
  list.matrix(attention + "q_proj", sizes.q_size(), hidden, config.qkv_bias);
  if (config.gates_attention) list.matrix(attention + "gate_proj", sizes.q_size(), hidden);
  list.head_norm(attention + "q_norm", sizes.head_count, sizes.head_dim);
  if (has_keys) {
    list.matrix(attention + "k_proj", sizes.kv_size(), hidden, config.qkv_bias);
    list.head_norm(attention + "k_norm", sizes.kv_head_count, sizes.head_dim);
  }
  if (has_keys && !config.traits_of(layer).values_are_keys)
    list.matrix(attention + "v_proj", sizes.kv_size(), hidden, config.qkv_bias);
  list.matrix(attention + "o_proj", hidden, sizes.q_size(), config.output_bias);
  if (config.attention_sinks) list.vector(attention + "sinks", sizes.head_count);
}

void append_layer(const ModelConfig& config, int64_t layer, TensorList& list) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  if (config.norm.has_inputs()) list.norm(prefix + "input_layernorm");
  if (config.has_mlp_norm()) list.norm(prefix + "post_attention_layernorm");
  if (config.norm.has_outputs()) {
    list.norm(prefix + "post_self_attn_layernorm");
    list.norm(prefix + "post_mlp_layernorm");
  }
  switch (config.traits_of(layer).kind) {
    case LayerKind::kAttention:
      append_attention(config, layer, prefix + "self_attn.", list);
      break;
    case LayerKind::kShortConvolution:
      append_convolution(config, prefix, list);
      break;
    case LayerKind::kDeltaNet:
      append_delta_net(config, prefix, list);
      break;
  }
  append_mlps(config, layer, prefix + "mlp.", list);
  append_layer_end(config, prefix, list);
}

void append_layer_inputs(const ModelConfig& config, TensorList& list) {
  const LayerInputTraits& inputs = config.layer_inputs;
  if (inputs.size == 0) return;
  const int64_t all_layers = config.layer_count * inputs.size;
  list.matrix("model.embed_tokens_per_layer", inputs.vocab_size, all_layers);
  list.matrix("model.per_layer_model_projection", all_layers, config.hidden_size);
  list.vector("model.per_layer_projection_norm", inputs.size);
}

// The alignment, in bytes, of an element or of the half-precision scale of a block.
size_t alignment_of(DType dtype) { return dtype == DType::kF32 ? sizeof(float) : sizeof(uint16_t); }

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) {
  std::vector<ExpectedTensor> expected;
  TensorList list(config, &expected);
  list.matrix("model.embed_tokens", config.vocab_size, config.token_size());
  if (config.learned_positions.count > 0)
    list.matrix("model.embed_positions", config.learned_positions.rows(), config.hidden_size);
  if (config.token_size() != config.hidden_size) {
    list.matrix("model.project_in", config.hidden_size, config.token_size());
    list.matrix("model.project_out", config.token_size(), config.hidden_size);
  }
  append_layer_inputs(config, list);
  for (int64_t layer = 0; layer < config.layer_count; ++layer) append_layer(config, layer, list);
  if (config.norm.has_final) list.norm("model.norm");
  if (!config.tied_embeddings) list.matrix("lm_head", config.vocab_size, config.token_size());
  return expected;
}

std::vector<ExpectedTensor> expected_layer_tensors(const ModelConfig& config, int64_t layer) {
  std::vector<ExpectedTensor> expected;
  TensorList list(config, &expected);
  append_layer(config, layer, list);
  return expected;
}

TensorView aligned(TensorView view, ModelStorage& storage) {
  if (reinterpret_cast<uintptr_t>(view.data) % alignment_of(view.dtype) == 0) return view;
  Buffer& copy = storage.copies.emplace_back(static_cast<size_t>(view.bytes()));
  std::memcpy(copy.data(), view.data, copy.size());
  view.data = copy.data();
  return view;
}

TensorView copy_rows(const TensorView& view, int64_t count, const std::function<int64_t(int64_t)>& row_of,
                     ModelStorage* storage) {
  const bool is_vector = view.shape.size() == 1;
  const auto size = static_cast<size_t>(row_bytes(view.dtype, is_vector ? 1 : view.cols()));
  Buffer& copy = storage->copies.emplace_back(static_cast<size_t>(count) * size);
  std::vector<std::byte> made;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = row_of(i);
    const std::byte* bytes = is_vector ? view.data + static_cast<size_t>(row) * size : view.row(row, made);
    std::memcpy(copy.data() + static_cast<size_t>(i) * size, bytes, size);
  }
  TensorView copied{view.dtype, view.shape, copy.data()};
  copied.shape.front() = count;
  return copied;
}

Status attach_expected(std::vector<ExpectedTensor> expected_list, const TensorLookup& lookup,
                       ModelStorage* storage, ModelFile* model) {
  const std::string name = model->path.string();
  for (ExpectedTensor& expected : expected_list) {
    OUTRIDER_TRY(TensorView view, lookup(expected.name));
    // A matrix of one row may be stored as a vector.
    if (view.shape.size() == 1 && expected.shape.size() == 2 && expected.shape.front() == 1)
      view.shape.insert(view.shape.begin(), 1);
    // Convolutions of every number by itself have a dimension of one in the middle.
    if (view.shape.size() == 3 && expected.shape.size() == 2 && view.shape[1] == 1)
      view.shape.erase(view.shape.begin() + 1);
    if (view.shape != expected.shape) {
      return input_error(name + ": tensor " + expected.name + " must have shape " +
                         shape_text(expected.shape) + " by the model's configuration, found " +
                         shape_text(view.shape));
    }
    const bool is_quantized = block_elements(view.dtype) != 1 || view.source != nullptr;
    if (view.shape.size() == 1 && is_quantized) {
      return input_error(name + ": tensor " + expected.name + " must be f32, f16 or bf16, found " +
                         (view.source ? "a quantised matrix" : std::string(dtype_name(view.dtype))));
    }
    model->tensors.emplace(std::move(expected.name), aligned(std::move(view), *storage));
  }
  return {};
}

Status attach_tensors(const TensorLookup& lookup, ModelStorage* storage, ModelFile* model) {
  const std::string name = model->path.string();
  OUTRIDER_RETURN_IF_ERROR(attach_expected(expected_tensors(model->config), lookup, storage, model));
  for (const MappedFile& file : storage->files) {
    model->mapped.push_back(file.bytes());
    model->stamps.push_back(file.stamp());
  }
  const auto pieces = static_cast<int64_t>(model->tokenizer.pieces.size());
  if (pieces > model->config.vocab_size) {
    return input_error(name + ": the tokenizer has " + std::to_string(pieces) + " tokens, the model only " +
                       std::to_string(model->config.vocab_size));
  }
  return {};
}

}  // namespace outrider
