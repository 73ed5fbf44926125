// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "formats/model_config.h"

namespace outrider {

// [head_dim / 2] angles per position, theta^(-2i / head_dim) with the config's scaling; rounded to f32 step
// by step as Hugging Face transformers does, whose models were made with those angles.
std::vector<float> rope_inverse_frequencies(const ModelConfig& config);

}  // namespace outrider
