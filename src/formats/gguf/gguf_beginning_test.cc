// SPDX-License-Identifier: Apache-2.0
// The keys before the vocabulary are read from a file that may end behind them.
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "formats/gguf/gguf.h"
#include "formats/gguf/test_gguf.h"

namespace outrider {
namespace {

namespace gguf = testing_gguf;

Result<GgufFile> beginning_of(const std::string& bytes) {
  return parse_gguf_beginning(std::as_bytes(std::span(bytes)), "test");
}

TEST(GgufBeginning, EndsWithTheSizeOfTheVocabulary) {
  const std::string bytes = gguf::tiny_model().serialize().bytes;
  const auto file = beginning_of(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->find("llama.embedding_length")->integer(), 4);
  EXPECT_EQ(file->find("tokenizer.ggml.tokens")->count(), 5u);
  EXPECT_EQ(file->find("tokenizer.ggml.scores"), nullptr);
  EXPECT_TRUE(file->tensors.empty());
}

TEST(GgufBeginning, IsRefusedWhereItIsCutOff) {
  const std::string bytes = gguf::tiny_model().serialize().bytes;
  const std::string key = "tokenizer.ggml.tokens";
  const size_t end = bytes.find(key) + key.size() + sizeof(uint32_t) * 2 + sizeof(uint64_t);
  for (size_t size = 0; size < end; ++size) EXPECT_FALSE(beginning_of(bytes.substr(0, size)).ok()) << size;
}

TEST(GgufBeginning, HasAllKeysWithoutAVocabulary) {
  gguf::File file = gguf::tiny_model();
  file.erase_key("tokenizer.ggml.tokens");
  const auto found = beginning_of(file.serialize().bytes);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->metadata.size(), file.keys.size());
  file.key("tokenizer.ggml.tokens") = gguf::u32(7);
  EXPECT_FALSE(beginning_of(file.serialize().bytes).ok());
}

}  // namespace
}  // namespace outrider
