// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "corpus/corpus.h"
#include "outrider/result.h"

namespace outrider {

// The sources that an index belongs to.
struct CorpusKey {
  uint64_t tokenizer = 0;  // of the tokens
  uint64_t texts = 0;      // of the files as they are now
  TokenId separator = 0;
};

// The file of an index: a page of numbers with their check sum, the tokens, firsts and places, each from a
// new page on, in the byte order of the machine.
struct CorpusFile {
  // The index at `path`. nullopt: there is none for this key; `reason` says why, where there is a file.
  static std::optional<std::shared_ptr<const Corpus>> open(const std::filesystem::path& path,
                                                           const CorpusKey& key, std::string& reason);

  // Writes the index of a text; `progress` is called with the places that are sorted.
  static Status write(const std::filesystem::path& path, const CorpusKey& key, const CorpusFacts& facts,
                      const TokenText& text, int threads, const std::function<void(int64_t)>& progress);
};

}  // namespace outrider
