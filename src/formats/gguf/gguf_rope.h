// SPDX-License-Identifier: Apache-2.0
// The rotary position embeddings that a GGUF file describes.
#pragma once

#include "formats/families.h"
#include "formats/gguf/architecture_keys.h"
#include "formats/gguf/gguf.h"
#include "formats/model_config.h"
#include "outrider/result.h"

namespace outrider {

// Reads ModelConfig::ropes and the temperature of queries. `config` has its sizes and its longest context.
Status read_gguf_ropes(const GgufFile& file, const ArchitectureKeys& keys, const ModelFamily& family,
                       ModelConfig* config);

}  // namespace outrider
