// SPDX-License-Identifier: Apache-2.0
#include "formats/model_tensors.h"

#include <cstring>
#include <utility>

namespace outrider {
namespace {

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const int64_t dimension : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(dimension);
  return text + "]";
}

void append_norms(const ModelConfig& config, int64_t layer, const std::string& prefix,
                  std::vector<ExpectedTensor>* expected) {
  const auto norm = [&](const char* name, int64_t size) {
    expected->push_back({prefix + name + ".weight", {size}});
  };
  const int64_t hidden = config.hidden_size;
  if (config.norm.placement != NormPlacement::kOutput) {
    norm("input_layernorm", hidden);
    norm("post_attention_layernorm", hidden);
  }
  if (config.norm.placement != NormPlacement::kInput) {
    norm("post_self_attn_layernorm", hidden);
    norm("post_mlp_layernorm", hidden);
  }
  if (config.qk_norm == QkNorm::kNone) return;
  const LayerSizes sizes = config.sizes_of(layer);
  norm("self_attn.q_norm", config.qk_norm_size(sizes.head_count, sizes.head_dim));
  if (config.kv_layer_of(layer) != layer) return;
  norm("self_attn.k_norm", config.qk_norm_size(sizes.kv_head_count, sizes.head_dim));
}

// The parts after the MLP.
void append_layer_end(const ModelConfig& config, const std::string& prefix,
                      std::vector<ExpectedTensor>* expected) {
  const int64_t size = config.layer_inputs.size;
  const int64_t hidden = config.hidden_size;
  if (size != 0) {
    expected->push_back({prefix + "per_layer_input_gate.weight", {size, hidden}});
    expected->push_back({prefix + "per_layer_projection.weight", {hidden, size}});
    expected->push_back({prefix + "post_per_layer_input_norm.weight", {hidden}});
  }
  if (config.layer_scalars) expected->push_back({prefix + "layer_scalar.weight", {1}});
}

void append_layer(const ModelConfig& config, int64_t layer, std::vector<ExpectedTensor>* expected) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  const int64_t hidden = config.hidden_size;
  const LayerSizes sizes = config.sizes_of(layer);
  const auto projection = [&](const std::string& name, int64_t rows, int64_t cols, bool bias) {
    expected->push_back({prefix + name + ".weight", {rows, cols}});
    if (bias) expected->push_back({prefix + name + ".bias", {rows}});
  };
  append_norms(config, layer, prefix, expected);
  projection("self_attn.q_proj", sizes.q_size(), hidden, config.qkv_bias);
  if (config.kv_layer_of(layer) == layer) {
    projection("self_attn.k_proj", sizes.kv_size(), hidden, config.qkv_bias);
    if (!config.traits_of(layer).values_are_keys)
      projection("self_attn.v_proj", sizes.kv_size(), hidden, config.qkv_bias);
  }
  projection("self_attn.o_proj", hidden, sizes.q_size(), config.output_bias);
  if (config.mlp.is_gated) projection("mlp.gate_proj", sizes.ffn_size, hidden, config.mlp.bias);
  projection("mlp.up_proj", sizes.ffn_size, hidden, config.mlp.bias);
  projection("mlp.down_proj", hidden, sizes.ffn_size, config.mlp.bias);
  append_layer_end(config, prefix, expected);
}

void append_layer_inputs(const ModelConfig& config, std::vector<ExpectedTensor>* expected) {
  const LayerInputTraits& inputs = config.layer_inputs;
  if (inputs.size == 0) return;
  const int64_t all_layers = config.layer_count * inputs.size;
  expected->push_back({"model.embed_tokens_per_layer.weight", {inputs.vocab_size, all_layers}});
  expected->push_back({"model.per_layer_model_projection.weight", {all_layers, config.hidden_size}});
  expected->push_back({"model.per_layer_projection_norm.weight", {inputs.size}});
}

// The alignment, in bytes, of an element or of the half-precision scale of a block.
size_t alignment_of(DType dtype) { return dtype == DType::kF32 ? sizeof(float) : sizeof(uint16_t); }

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) {
  std::vector<ExpectedTensor> expected;
  expected.push_back({"model.embed_tokens.weight", {config.vocab_size, config.hidden_size}});
  append_layer_inputs(config, &expected);
  for (int64_t layer = 0; layer < config.layer_count; ++layer) append_layer(config, layer, &expected);
  expected.push_back({"model.norm.weight", {config.hidden_size}});
  if (!config.tied_embeddings)
    expected.push_back({"lm_head.weight", {config.vocab_size, config.hidden_size}});
  return expected;
}

TensorView aligned(TensorView view, ModelStorage& storage) {
  if (reinterpret_cast<uintptr_t>(view.data) % alignment_of(view.dtype) == 0) return view;
  Buffer& copy = storage.copies.emplace_back(static_cast<size_t>(view.bytes()));
  std::memcpy(copy.data(), view.data, copy.size());
  view.data = copy.data();
  return view;
}

Status attach_tensors(const TensorLookup& lookup, ModelStorage* storage, ModelFile* model) {
  const std::string name = model->path.string();
  for (ExpectedTensor& expected : expected_tensors(model->config)) {
    OUTRIDER_TRY(TensorView view, lookup(expected.name));
    if (view.shape != expected.shape) {
      return input_error(name + ": tensor " + expected.name + " must have shape " +
                         shape_text(expected.shape) + " by the model's configuration, found " +
                         shape_text(view.shape));
    }
    if (view.shape.size() == 1 && block_elements(view.dtype) != 1) {
      return input_error(name + ": tensor " + expected.name + " must be f32, f16 or bf16, found " +
                         std::string(dtype_name(view.dtype)));
    }
    model->tensors.emplace(std::move(expected.name), aligned(std::move(view), *storage));
  }
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
