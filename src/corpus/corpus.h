// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

#include "corpus/token_text.h"
#include "platform/mapped_file.h"

namespace outrider {

struct CorpusFacts {
  int64_t files = 0;
  int64_t documents = 0;
  int64_t text_bytes = 0;
  int64_t tokens = 0;
  int64_t places = 0;  // see context_order.h
};

// Texts of others in the tokens of one tokenizer, and where any string of tokens stands in them: a mapped
// file. Immutable; threads and processes share it. A file that was damaged after it was written yields other
// drafts, and no access outside of it.
class Corpus {
 public:
  const TokenText& text() const { return text_; }
  std::span<const uint32_t> places() const { return places_; }  // in the order of context_order.h
  std::span<const uint32_t> firsts() const { return firsts_; }  // see count_places()
  const CorpusFacts& facts() const { return facts_; }
  const std::filesystem::path& path() const { return path_; }
  int64_t index_bytes() const { return static_cast<int64_t>(file_.bytes().size()); }

 private:
  friend struct CorpusFile;
  explicit Corpus(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  std::filesystem::path path_;
  CorpusFacts facts_;
  TokenText text_;
  std::span<const uint32_t> firsts_, places_;
};

}  // namespace outrider
