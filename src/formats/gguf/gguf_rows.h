// SPDX-License-Identifier: Apache-2.0
// The two orders of the rows of q and k. Rotate-half order (Hugging Face) has the two halves of a rotated
// head one after the other; interleaved order (Llama in GGUF) has row i of both halves side by side.
#pragma once

#include "formats/model_tensors.h"
#include "tensor/tensor_view.h"

namespace outrider {

// Copies whole rows (elements of a bias) in the other order; `storage` keeps the copy. Block types work as
// well. Precondition: the number of rows is a multiple of head_dim.
TensorView interleave_rows(const TensorView& view, int64_t head_dim, ModelStorage* storage);
TensorView uninterleave_rows(const TensorView& view, int64_t head_dim, ModelStorage* storage);

}  // namespace outrider
