// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/gguf/gguf_writer.h"
#include "outrider/result.h"
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

// Writes `spec`, as a tokenizer.json has it, as `tokenizer.ggml.*` keys. The vocabulary is filled up with
// unused tokens to the model's `vocab_size`, which llama.cpp asks for. Returns what GGUF has no words for,
// one line each, where that changes rare texts only.
//
// Errors: a pre-tokenizer without a GGUF name; SentencePiece-style merges that scores cannot stand for.
Result<std::vector<std::string>> export_tokenizer(const TokenizerSpec& spec, int64_t vocab_size,
                                                  GgufMetadataWriter* metadata);

}  // namespace outrider
