// SPDX-License-Identifier: Apache-2.0
// The rotary position embeddings that a config.json describes.
#pragma once

#include "formats/families.h"
#include "formats/json_object.h"
#include "formats/model_config.h"
#include "outrider/result.h"

namespace outrider {

// Reads ModelConfig::ropes: one for all layers, or the one of full layers and then the one of layers with a
// sliding window. `config` has its sizes and its longest context, which dynamic scaling and YaRN may extend.
//
// "rope_parameters" is the newer spelling of "rope_theta" and "rope_scaling" in one object, or in one for
// each type of layers.
Status read_hf_ropes(const JsonObject& root, const ModelFamily& family, ModelConfig* config);

}  // namespace outrider
