// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/model_config.h"

namespace outrider::training {

// Whether the network has the form of Llama, Mistral and Qwen, which the trainer's own networks have: their
// layers can be the beginning of a drafter's, and libtorch can run them.
bool has_llama_form(const ModelConfig& config);

// The rotary embedding of a drafter's layers: the target's in a target of that form, else plain with the
// target's base.
RopeTraits drafter_rope(const ModelConfig& target);

// The last layer with attention to keys and values that it caches in heads; the last layer if there is none.
int64_t last_attention_layer(const ModelConfig& config);

}  // namespace outrider::training
