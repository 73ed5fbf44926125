// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "corpus/corpus_file.h"

namespace outrider {

using TokenDocuments = std::vector<std::vector<TokenId>>;

// The documents as a text of tokens: `bytes` holds it. `separator` is the size of the vocabulary.
inline TokenText token_text(const TokenDocuments& documents, TokenId separator,
                            std::vector<std::byte>& bytes) {
  const int width = TokenText::width_for(separator);
  const auto add = [&](TokenId id) {
    for (int i = 0; i < width; ++i) bytes.push_back(static_cast<std::byte>(id >> (8 * i)));
  };
  for (int64_t i = 0; i < kTextPadding; ++i) add(separator);
  for (const std::vector<TokenId>& document : documents) {
    add(separator);
    for (const TokenId token : document) add(token);
  }
  add(separator);
  return {.bytes = bytes, .width = width, .separator = separator};
}

// A corpus of the documents. Null, and a failure of the running test, where its file cannot be written.
inline std::shared_ptr<const Corpus> test_corpus(const TokenDocuments& documents, TokenId separator) {
  std::vector<std::byte> bytes;
  const TokenText text = token_text(documents, separator, bytes);
  std::string name = testing::TempDir() + "outrider_corpus_XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(name.data());
  const CorpusKey key{.tokenizer = 1, .texts = 2, .separator = separator};
  const CorpusFacts facts{.documents = static_cast<int64_t>(documents.size())};
  const Status written = CorpusFile::write(folder / "index", key, facts, text, 2, [](int64_t) {});
  EXPECT_TRUE(written.ok()) << written.error().message;
  std::string reason;
  auto corpus = CorpusFile::open(folder / "index", key, reason);
  EXPECT_TRUE(corpus.has_value()) << reason;
  std::filesystem::remove_all(folder);
  return corpus.value_or(nullptr);
}

}  // namespace outrider
