// SPDX-License-Identifier: Apache-2.0
#include "formats/model_tensors.h"

#include <cstring>
#include <utility>

namespace outrider {
namespace {

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

void append_layer(const ModelConfig& config, int64_t layer, TensorList& list) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  if (config.norm.has_inputs()) list.norm(prefix + "input_layernorm");
  if (config.has_mlp_norm()) list.norm(prefix + "post_attention_layernorm");
  if (config.norm.has_outputs()) {
    list.norm(prefix + "post_self_attn_layernorm");
    list.norm(prefix + "post_mlp_layernorm");
  }
  config.traits_of(layer).kind->append_tensors(config, layer, prefix, list);
  config.traits_of(layer).mlp->append_tensors(config, layer, prefix, list);
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
  storage->list_files(*model);
  const auto pieces = static_cast<int64_t>(model->tokenizer.pieces.size());
  if (pieces > model->config.vocab_size) {
    return input_error(name + ": the tokenizer has " + std::to_string(pieces) + " tokens, the model only " +
                       std::to_string(model->config.vocab_size));
  }
  return {};
}

}  // namespace outrider
