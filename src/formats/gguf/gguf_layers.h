// SPDX-License-Identifier: Apache-2.0
// The traits in which the layers of a GGUF file differ.
#pragma once

#include "formats/families.h"
#include "formats/gguf/architecture_keys.h"
#include "formats/gguf/gguf.h"
#include "formats/model_config.h"
#include "outrider/result.h"

namespace outrider {

// Reads ModelConfig::layer_traits: windows, sizes, and the layer that a layer reads keys and values of.
// `config` has its sizes, taken from the first layer without a window.
Status read_gguf_layers(const GgufFile& file, const ArchitectureKeys& keys, const ModelFamily& family,
                        ModelConfig* config);

}  // namespace outrider
