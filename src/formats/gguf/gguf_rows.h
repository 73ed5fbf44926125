// SPDX-License-Identifier: Apache-2.0
// The two orders of the rows of q and k: rotate-half (Hugging Face) has the two halves of a rotated head one
// after the other, interleaved (Llama in GGUF) has row i of either half side by side.
#pragma once

#include "formats/model_tensors.h"
#include "tensor/tensor_view.h"

namespace outrider {

// Copies of whole rows (elements of a bias) in the other order, kept by `storage`; block types are served
// too. Precondition: the number of rows is a multiple of head_dim.
TensorView interleave_rows(const TensorView& view, int64_t head_dim, ModelStorage* storage);
TensorView uninterleave_rows(const TensorView& view, int64_t head_dim, ModelStorage* storage);

}  // namespace outrider
