// SPDX-License-Identifier: Apache-2.0
// Text for training a learned drafter, tokenized for the target.
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
  std::vector<uint8_t> counted;  // 1 for tokens of responses; all tokens of a text without prompt
};

// The documents of one file.
struct DocumentSource {
  std::string name;
  std::vector<Document> documents;
};

// Reads a path given with --data. It may be a .jsonl file with lines that have "messages": [{"role",
// "content"}], "text", or "prompt" and, unless it is answered anew, "response". In a .txt file empty lines
// part texts. A folder made by tools/prepare_training_data.py has train/ and, with `wants_prompts`, prompts/.
// Errors: another kind of path, malformed lines (with their number), tokens outside the vocabulary.
Result<std::vector<DocumentSource>> read_documents(const std::filesystem::path& path, const ModelFile& target,
                                                   bool wants_prompts);

// Questions in the target's chat template, if it has one, without responses.
Result<DocumentSource> asked_documents(const std::string& name, const std::vector<std::string>& questions,
                                       const ModelFile& target);

// Reads at most `limit` held-out prompts of a .jsonl file, spread evenly over it. A line has "messages",
// "prompt" (text, or a list of turns) or "turns" (the user's; the first is the prompt). It is put into the
// chat template if the target has one and "kind" is not "continue".
Result<std::vector<std::vector<TokenId>>> read_prompts(const std::filesystem::path& path,
                                                       const ModelFile& target, int64_t limit);

}  // namespace outrider::training
