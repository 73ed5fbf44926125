// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "formats/gguf/gguf.h"
#include "outrider/result.h"
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

// Reads the `tokenizer.ggml.*` keys as a spec for Tokenizer::create; `name` is for messages. Absent flags
// have the values that llama.cpp assumes for the tokenizer model and pre-tokenizer.
//
// Errors: a tokenizer model other than "gpt2" and "llama", an unknown pre-tokenizer (both named, with what is
// supported), missing or mistyped keys, arrays of different lengths, ids outside the vocabulary.
Result<TokenizerSpec> gguf_tokenizer_spec(const GgufFile& file, std::string_view name);

// Reads the spec from a file, which need not hold any tensors.
Result<TokenizerSpec> read_gguf_tokenizer(const std::filesystem::path& path);

}  // namespace outrider
