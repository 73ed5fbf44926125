// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/families.h"
#include "formats/gguf/architecture_keys.h"
#include "formats/gguf/gguf.h"

namespace outrider {

// Reads the mixture of experts of a GGUF file: its numbers from keys, all else from the tensors that are
// there. Error: experts in a family that has none, a missing or mis-shaped tensor.
Status read_gguf_experts(const GgufFile& file, const ArchitectureKeys& keys, const ModelFamily& family,
                         ModelConfig* config);

}  // namespace outrider
