// SPDX-License-Identifier: Apache-2.0
// Readers of the keys of config.json that families with latent attention have, as family_traits.h.
#pragma once

#include "formats/json_file.h"
#include "formats/model_config.h"
#include "outrider/result.h"

namespace outrider {

Status read_deepseek_v2_traits(const JsonObject& root, ModelConfig* config);
Status read_deepseek_v3_traits(const JsonObject& root, ModelConfig* config);  // GLM-4.7-Flash, too

// Fills in what follows from config->latent. magnitude: mscale_all_dim of YaRN; 0: there is none.
void derive_latent_attention(double magnitude, ModelConfig* config);

}  // namespace outrider
