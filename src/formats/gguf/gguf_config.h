// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

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

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight". Precondition: a name that
// expected_tensors() gives.
std::string gguf_tensor_name(std::string_view hf_name);

// True for the spellings of end-of-text tokens that end a text whether or not a file lists their ids.
bool ends_text_by_spelling(std::string_view piece);

// True for q and k projections (weight and bias) of architectures that store the two halves of a rotated head
// interleaved: row 2i of a head is row i of Hugging Face's order, row 2i + 1 is row head_dim / 2 + i.
bool has_interleaved_rows(const ModelConfig& config, std::string_view hf_name);

}  // namespace outrider
