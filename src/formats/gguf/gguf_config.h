// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/families.h"
#include "formats/gguf/gguf.h"
#include "formats/model_config.h"
#include "outrider/result.h"
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

// Reads the configuration that a GGUF file describes by its `<architecture>.*` keys, its tensors (tied
// embeddings, biases, the vocabulary size, rope_freqs.weight) and its tokenizer (end-of-text ids); `name` is
// for messages.
//
// Errors: an architecture that formats/families.h does not list, an unknown RoPE scaling, mixtures of experts
// (named); missing or mistyped keys; numbers that fail validate().
Result<ModelConfig> gguf_model_config(const GgufFile& file, const TokenizerSpec& tokenizer,
                                      std::string_view name);

// How files of a family name expected tensors: "self_attn.q_proj" -> "attn_q". They are StoredLayout::names.
std::vector<TensorName> gguf_names(const ModelFamily& family);
inline constexpr std::string_view kGgufLayers = "blk.";

// True for the spellings of end-of-text tokens that end a text whether or not a file lists their ids.
bool ends_text_by_spelling(std::string_view piece);

}  // namespace outrider
