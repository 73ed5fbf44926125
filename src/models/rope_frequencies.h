// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "formats/model_config.h"

namespace outrider {

// The [head_dim / 2] angles per position, theta^(-2i / head_dim) with the scaling of the configuration. They
// are rounded to f32 step by step as in Hugging Face transformers, because models are trained with these
// angles.
std::vector<float> rope_inverse_frequencies(const ModelConfig& config);

}  // namespace outrider
