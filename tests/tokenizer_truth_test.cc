// SPDX-License-Identifier: Apache-2.0
// Compares vocabularies of published models with the ids that Hugging Face tokenizers gave for 46 texts.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>

#include "formats/gguf/gguf_tokenizer.h"
#include "tests/support/base64.h"
#include "tokenizer/byte_mapping.h"
#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

const std::filesystem::path kData =
    std::filesystem::path(OUTRIDER_SOURCE_DIR) / ".." / "shared" / "data" / "tokenizer";
constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
constexpr size_t kTexts = 46;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::vector<std::string> read_texts(const std::filesystem::path& path) {
  const std::string all = read_file(path);
  std::vector<std::string> texts;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = all.find(kSeparator, begin);
    texts.push_back(all.substr(begin, end - begin));
    begin = end + kSeparator.size();
  }
  return texts;
}

std::vector<std::vector<TokenId>> read_ids(const std::filesystem::path& path) {
  std::vector<std::vector<TokenId>> lines;
  std::istringstream file(read_file(path));
  for (std::string line; std::getline(file, line);) {
    std::istringstream numbers(line);
    lines.emplace_back(std::istream_iterator<TokenId>(numbers), std::istream_iterator<TokenId>());
  }
  return lines;
}

void expect_truth(const TokenizerSpec& spec, const std::string& family) {
  const auto tokenizer = Tokenizer::create(spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const auto texts = read_texts(kData / ("ggml-vocab-" + family + ".gguf.inp"));
  const auto ids = read_ids(kData / ("ggml-vocab-" + family + ".gguf.out"));
  ASSERT_EQ(texts.size(), kTexts);
  ASSERT_EQ(ids.size(), kTexts);
  for (size_t i = 0; i < kTexts; ++i) {
    const auto found = (*tokenizer)->encode(texts[i], {.add_special = false});
    EXPECT_EQ(found, ids[i]) << "text " << i << ": " << texts[i];
    EXPECT_EQ((*tokenizer)->decode(found), texts[i]);
  }
}

class TokenizerTruth : public testing::TestWithParam<std::string> {};

TEST_P(TokenizerTruth, GgufVocabularyGivesTheIdsOfHuggingFace) {
  const std::filesystem::path path = kData / ("ggml-vocab-" + GetParam() + ".gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  auto spec = read_gguf_tokenizer(path);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  expect_truth(*spec, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Families, TokenizerTruth,
                         testing::Values("gpt-2", "falcon", "mpt", "refact", "starcoder", "deepseek-coder",
                                         "deepseek-llm", "llama-spm", "phi-3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Vocabularies without recorded ids must load, and decode() must give every text back.
TEST(TokenizerTruth, VocabulariesWithoutTruthRoundTrip) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData;
  for (const std::string family : {"baichuan", "gpt-neox"}) {
    auto spec = read_gguf_tokenizer(kData / ("ggml-vocab-" + family + ".gguf"));
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    const auto tokenizer = Tokenizer::create(std::move(*spec));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    for (const std::string& text : read_texts(kData / "ggml-vocab-gpt-2.gguf.inp")) {
      EXPECT_EQ((*tokenizer)->decode((*tokenizer)->encode(text)), text) << family;
    }
  }
}

using Ranks = std::map<std::string, int, std::less<>>;

// The two tokens that a token was merged from: merging only by lower ranks leaves these two.
std::optional<std::pair<std::string, std::string>> origin_of(const std::string& token, const Ranks& ranks) {
  std::vector<std::string> parts;
  for (const char byte : token) parts.emplace_back(1, byte);
  while (parts.size() > 2) {
    int best_rank = ranks.at(token);
    size_t best = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks.find(parts[i] + parts[i + 1]);
      if (found == ranks.end() || found->second >= best_rank) continue;
      best_rank = found->second;
      best = i;
    }
    if (best_rank == ranks.at(token)) return std::nullopt;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  return std::pair(parts[0], parts[1]);
}

TEST(TokenizerTruth, TiktokenRanksOfQwen2GiveTheIdsOfHuggingFace) {
  const std::filesystem::path path = kData / "qwen.tiktoken";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  Ranks ranks;
  TokenizerSpec spec;
  std::istringstream file(read_file(path));
  int rank = 0;
  std::vector<std::string> tokens;
  for (std::string encoded; file >> encoded >> rank;) {
    tokens.push_back(from_base64(encoded));
    ASSERT_EQ(rank, static_cast<int>(tokens.size()) - 1);
    ranks.emplace(tokens.back(), rank);
    spec.pieces.push_back(map_bytes(tokens.back()));
  }
  for (const std::string& token : tokens) {
    if (token.size() < 2) continue;
    if (const auto origin = origin_of(token, ranks)) {
      spec.merges.emplace_back(map_bytes(origin->first), map_bytes(origin->second));
    }
  }
  ASSERT_TRUE(apply_gguf_pre_tokenizer("qwen2", spec).ok());
  expect_truth(spec, "qwen2");
}

}  // namespace
}  // namespace outrider
