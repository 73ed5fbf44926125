// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/json_object.h"
#include "formats/layer_kind.h"

namespace outrider {

extern const LayerKind kShortConvolutionKind;

struct ConvolutionTraits {
  int64_t taps = 0;  // entries of a sum, the row's own included
  bool bias = false;
};

Status read_lfm2_traits(const JsonObject& root, ModelConfig* config);

}  // namespace outrider
