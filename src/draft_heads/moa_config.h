// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "draft_heads/head_file.h"
#include "formats/model_config.h"
#include "outrider/result.h"

namespace outrider {

// A Mixture of Attentions drafter (arXiv 2410.03804): its layers, each with its own sizes.
struct MoaConfig {
  ModelConfig layer_self_attention;  // over the target's layers, of one token
  ModelConfig self_attention;        // over tokens
  ModelConfig cross_attention;       // from tokens to the target's state; as many key-value heads
  bool uses_layers = true;           // without layer self-attention the state is the last hidden state
  bool uses_cross = true;            // false: only self-attention, to measure what the rest is worth
  int64_t target_layers = 0;         // last layers of the target that drafts run through
};

// Reads config.json: Hugging Face's keys of the target (as its authors save it) or the keys of their vLLM
// version; sizes that neither names come from the tensors. Errors: keys that contradict the target, the
// tensors or one another; the first tensor that is missing, has another shape, or does not belong there.
Result<MoaConfig> read_moa_config(const HeadFile& head, const ModelConfig& target);

}  // namespace outrider
