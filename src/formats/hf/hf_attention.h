// SPDX-License-Identifier: Apache-2.0
// The sliding windows and the positions of each layer that a config.json describes.
#pragma once

#include "formats/families.h"
#include "formats/json_object.h"
#include "formats/model_config.h"
#include "outrider/result.h"

namespace outrider {

// Reads ModelConfig::attention: one element where all layers are alike, else one for each. `config` has its
// sizes.
Status read_hf_attention(const JsonObject& root, const ModelFamily& family, ModelConfig* config);

}  // namespace outrider
