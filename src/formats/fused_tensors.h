// SPDX-License-Identifier: Apache-2.0
// Projections that some families store as rows of one larger matrix.
#pragma once

#include <string>

#include "formats/model_config.h"
#include "formats/model_tensors.h"
#include "outrider/result.h"

namespace outrider {

// The lookup of a family that stores queries, keys and values in "self_attn.qkv_proj", and gate and up in
// "mlp.gate_up_proj": their names are found as rows of these in `stored`, all others as they are.
TensorLookup split_fused(const ModelConfig& config, TensorLookup stored);

}  // namespace outrider
