// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "outrider/result.h"

namespace outrider::training {

// The facts of a tokenizer folder that training needs.
struct TokenizerFacts {
  int vocab_size = 0;            // highest id + 1
  int document_end = 0;          // first eos_token_id of generation_config.json
  std::vector<int> stop_tokens;  // all eos_token_ids
};

Result<TokenizerFacts> read_tokenizer_facts(const std::filesystem::path& directory);

// Copies tokenizer.json, tokenizer_config.json and generation_config.json.
Status copy_tokenizer_files(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace outrider::training
