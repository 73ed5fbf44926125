// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "formats/gguf/gguf.h"
#include "outrider/result.h"
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

// The `tokenizer.ggml.*` keys as a spec that Tokenizer::create can check; `name` is for messages. Flags the
// file leaves out have the values llama.cpp assumes for the tokenizer model and pre-tokenizer.
//
// Errors: a tokenizer model other than "gpt2" and "llama", an unknown pre-tokenizer (both named, with what is
// supported), missing or mistyped keys, arrays of different lengths, ids outside the vocabulary.
Result<TokenizerSpec> gguf_tokenizer_spec(const GgufFile& file, std::string_view name);

// The same from a file, which need not hold any tensors.
Result<TokenizerSpec> read_gguf_tokenizer(const std::filesystem::path& path);

}  // namespace outrider
