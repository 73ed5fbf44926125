// SPDX-License-Identifier: Apache-2.0
// Text for training a learned drafter, tokenized as the target sees it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/model_file.h"
#include "outrider/result.h"
#include "outrider/token.h"

namespace outrider::training {

// A text, or a conversation in the target's chat template.
struct Document {
  std::vector<TokenId> tokens;
  std::vector<uint8_t> counted;  // by token: 1 where it is a response's; all are of a text without prompt
};

// Documents of one file, by the name of the file.
struct DocumentSource {
  std::string name;
  std::vector<Document> documents;
};

// Reads what --data names: a .jsonl file (lines with "messages": [{"role", "content"}], "text", or "prompt"
// and "response"), or a folder made by tools/prepare_training_data.py, of which train/ (`wants_prompts`:
// prompts/) is taken. Error: none of these, malformed lines (with their number), tokens outside the
// vocabulary.
Result<std::vector<DocumentSource>> read_documents(const std::filesystem::path& path, const ModelFile& target,
                                                   bool wants_prompts);

// Held-out prompts of a .jsonl file: "prompt" (text, or a list of turns; in the chat template unless
// "kind" is "continue" and where there is one) or "messages".
Result<std::vector<std::vector<TokenId>>> read_prompts(const std::filesystem::path& path,
                                                       const ModelFile& target, int64_t limit);

}  // namespace outrider::training
