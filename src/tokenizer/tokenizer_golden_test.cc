// SPDX-License-Identifier: Apache-2.0
// Tiny tokenizers of every family give the ids of the `tokenizers` package (tools/make_tokenizer_goldens.py).
#include <gtest/gtest.h>
#include <simdjson.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

const std::filesystem::path kGoldens =
    std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests" / "data" / "tokenizer";

std::vector<std::string> read_texts() {
  simdjson::dom::parser parser;
  std::vector<std::string> texts;
  for (const simdjson::dom::element text : parser.load((kGoldens / "texts.json").string()).get_array()) {
    texts.emplace_back(text.get_string().value());
  }
  return texts;
}

std::vector<std::vector<TokenId>> read_ids(const std::filesystem::path& path) {
  std::vector<std::vector<TokenId>> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream numbers(line);
    lines.emplace_back(std::istream_iterator<TokenId>(numbers), std::istream_iterator<TokenId>());
  }
  return lines;
}

std::shared_ptr<const Tokenizer> load(const std::filesystem::path& directory) {
  auto spec = read_tokenizer_json(directory);
  EXPECT_TRUE(spec.ok()) << spec.error().message;
  if (!spec.ok()) return nullptr;
  auto tokenizer = Tokenizer::create(std::move(*spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return tokenizer.ok() ? *tokenizer : nullptr;
}

std::vector<std::filesystem::path> family_directories() {
  std::vector<std::filesystem::path> directories;
  for (const auto& entry : std::filesystem::directory_iterator(kGoldens)) {
    if (entry.is_directory()) directories.push_back(entry.path());
  }
  return directories;
}

TEST(TokenizerGolden, EveryFamilyGivesTheIdsOfHuggingFace) {
  const std::vector<std::string> texts = read_texts();
  const auto directories = family_directories();
  ASSERT_EQ(directories.size(), 26u);
  for (const auto& directory : directories) {
    const auto tokenizer = load(directory);
    ASSERT_NE(tokenizer, nullptr) << directory;
    const auto ids = read_ids(directory / "ids.txt");
    ASSERT_EQ(ids.size(), texts.size()) << directory;
    for (size_t i = 0; i < texts.size(); ++i)
      EXPECT_EQ(tokenizer->encode(texts[i]), ids[i]) << directory << texts[i];
  }
}

TEST(TokenizerGolden, PlainEncodingGivesTheTextBack) {
  const std::vector<std::string> texts = read_texts();
  const auto tokenizer = load(kGoldens / "llama3");
  ASSERT_NE(tokenizer, nullptr);
  for (const std::string& text : texts) {
    const auto tokens = tokenizer->encode(text, {.add_special = false, .parse_special = false});
    // <tool> is no control token, and includes the white space after it.
    if (text.find("<tool>") != std::string::npos) continue;
    EXPECT_EQ(tokenizer->decode(tokens), text);
  }
}

TEST(TokenizerGolden, StreamDecoderAgreesWithDecode) {
  const std::vector<std::string> texts = read_texts();
  for (const char* family : {"gpt2", "llama2_prepend", "metaspace_first", "gemma"}) {
    const auto tokenizer = load(kGoldens / family);
    ASSERT_NE(tokenizer, nullptr);
    for (const std::string& text : texts) {
      for (const bool skip_special : {true, false}) {
        const auto tokens = tokenizer->encode(text);
        StreamDecoder decoder(tokenizer, skip_special);
        std::string streamed;
        for (const TokenId token : tokens) streamed += decoder.push(token);
        streamed += decoder.finish();
        EXPECT_EQ(streamed, tokenizer->decode(tokens, skip_special)) << family;
      }
    }
  }
}

}  // namespace
}  // namespace outrider
