// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "corpus/corpus.h"
#include "outrider/result.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

struct CorpusOptions {
  std::vector<std::filesystem::path> texts;  // files and folders
  std::filesystem::path cache;               // folder of the index
  int threads = 1;
};

// Maps the index of the texts, and builds it first where there is none, or one of other texts or of another
// tokenizer, or a damaged one; the log tells how far it is. Another process that builds it is waited for. It
// is written completely or not at all. Errors: texts that cannot be read; no folder for the index; a full
// disk.
Result<std::shared_ptr<const Corpus>> open_corpus(const CorpusOptions& options, const Tokenizer& tokenizer);

}  // namespace outrider
