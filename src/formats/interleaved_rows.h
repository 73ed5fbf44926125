// SPDX-License-Identifier: Apache-2.0
// The two orders of the rows of q and k. Rotate-half order (most Hugging Face files) has the two halves of
// the rotated part of a head one after the other. Interleaved order (Llama in GGUF, GLM everywhere) has row i
// of both halves side by side.
#pragma once

#include <string_view>

#include "formats/model_tensors.h"
#include "tensor/tensor_view.h"

namespace outrider {

// True for the names of the projections (weight and bias) with outputs that turn.
bool is_rotated(std::string_view expected_name);

// Copies whole rows (elements of a bias) in the other order; `storage` keeps the copy. Block types work as
// well. Precondition: the number of rows is a multiple of the head size.
TensorView interleave_rows(const TensorView& view, const ModelConfig& config, ModelStorage* storage);
TensorView uninterleave_rows(const TensorView& view, const ModelConfig& config, ModelStorage* storage);

// Brings all of the model's rotated projections to rotate-half order.
void uninterleave_model(ModelStorage* storage, ModelFile* model);

}  // namespace outrider
