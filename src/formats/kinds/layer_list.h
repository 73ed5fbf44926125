// SPDX-License-Identifier: Apache-2.0
// Which layers of a model with layers of two kinds have attention, as config.json tells it.
#pragma once

#include <string_view>
#include <vector>

#include "formats/json_object.h"
#include "formats/model_config.h"
#include "outrider/result.h"

namespace outrider {

// By "layer_types", where layers without attention are called `other`; an empty list: the key is absent.
Result<std::vector<bool>> read_attention_types(const JsonObject& root, std::string_view other);

// Makes layers without attention layers of the other kind. Error: not a word for each layer.
Status set_layer_kinds(const JsonObject& root, const std::vector<bool>& attends, const LayerKind& other,
                       ModelConfig* config);

}  // namespace outrider
