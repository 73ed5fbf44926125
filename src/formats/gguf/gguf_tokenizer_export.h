// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/gguf/gguf_writer.h"
#include "outrider/result.h"
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

// Writes `spec`, as read from a tokenizer.json, as `tokenizer.ggml.*` keys. Unused tokens fill the vocabulary
// up to the model's `vocab_size`, which llama.cpp asks for. Returns the traits that GGUF cannot express and
// that change rare texts only, one line each.
//
// Errors: a pre-tokenizer without a GGUF name; SentencePiece-style merges that no scores can express.
Result<std::vector<std::string>> export_tokenizer(const TokenizerSpec& spec, int64_t vocab_size,
                                                  GgufMetadataWriter* metadata);

}  // namespace outrider
