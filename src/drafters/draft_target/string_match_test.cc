// SPDX-License-Identifier: Apache-2.0
#include "drafters/draft_target/string_match.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outrider {
namespace {

constexpr EncodeOptions kPlain = {.add_special = false, .parse_special = false};

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& name) {
  auto spec = read_tokenizer_json(OUTRIDER_SOURCE_DIR "/tests/data/tokenizer/" + name);
  EXPECT_TRUE(spec.ok()) << spec.error().message;
  auto tokenizer = Tokenizer::create(std::move(spec).value());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return *tokenizer;
}

// Byte-level vocabularies, pieces of SentencePiece with and without a space before the text, and characters.
constexpr const char* kTokenizers[] = {"gpt2", "llama3", "qwen2", "deepseek_v3", "llama2_prepend", "gemma"};

std::string sample_text() {
  std::string text = "The walkers of Königsberg";
  for (int i = 0; i < 12; ++i) {
    text += i % 5 == 4 ? "\n\nNext: it's " : ", then walking over\tthe bridges";
    text += i % 4 == 3 ? " 桥梁 = 'naïve'()  {" : " again and again " + std::to_string(i * 37);
  }
  return text;
}

std::string bytes_of(const Tokenizer& tokenizer, std::span<const TokenId> tokens) {
  std::string text;
  for (const TokenId token : tokens) text += tokenizer.token_bytes(token);
  return text;
}

std::vector<TokenId> split(const StringMatch& match, const std::string& words, const std::string& drafted) {
  std::vector<StringMatch::Piece> pieces;
  match.split(words, drafted, pieces);
  std::vector<TokenId> tokens;
  for (const StringMatch::Piece& piece : pieces) tokens.push_back(piece.token);
  return tokens;
}

// The slow way: the whole text is tokenized from its beginning. The tokens after `bytes` bytes, if one begins
// there.
std::optional<std::vector<TokenId>> tokens_after(const Tokenizer& tokenizer, const std::string& text,
                                                 size_t bytes) {
  const std::vector<TokenId> all = tokenizer.encode(text, kPlain);
  // A space that the tokenizer puts before the text is no part of it.
  size_t position = text.size() - bytes_of(tokenizer, all).size();
  for (size_t i = 0; i < all.size(); ++i) {
    if (position == bytes) return std::vector(all.begin() + static_cast<ptrdiff_t>(i), all.end());
    position += tokenizer.token_bytes(all[i]).size();
  }
  return std::nullopt;
}

// Texts that end after any byte go on with up to 13 more, whether these end a token or not.
TEST(StringMatch, GivesTheTokensOfTheWholeText) {
  const std::string text = sample_text();
  for (const char* name : kTokenizers) {
    const auto tokenizer = open_tokenizer(name);
    const StringMatch match(*tokenizer, tokenizer->vocab_size());
    int compared = 0;
    for (size_t end = 1; end < text.size(); ++end) {
      const std::string drafted = text.substr(end, 1 + end % 13);
      const auto expected = tokens_after(*tokenizer, text.substr(0, end) + drafted, end);
      const std::vector<TokenId> before = tokenizer->encode(text.substr(0, end), kPlain);
      const std::vector<TokenId> found = split(match, match.last_words(before), drafted);
      EXPECT_EQ(bytes_of(*tokenizer, found), drafted) << name << " after " << end << " bytes";
      if (!expected) continue;
      ++compared;
      EXPECT_EQ(found, *expected) << name << " after " << end << " bytes: " << drafted;
    }
    EXPECT_GT(compared, static_cast<int>(text.size()) / 8) << name;
  }
}

// A word that is committed in part cannot get the token that the whole word has.
TEST(StringMatch, PartsOfWordsGoOnWithTheLongestTokens) {
  const auto tokenizer = open_tokenizer("gpt2");
  const StringMatch match(*tokenizer, tokenizer->vocab_size());
  const auto whole = tokenizer->encode(" again", kPlain);
  for (size_t end = 1; end < 6; ++end) {
    const std::string begun = std::string(" again").substr(0, end), rest = std::string(" again").substr(end);
    const std::vector<TokenId> found = split(match, begun, rest + " and");
    EXPECT_EQ(bytes_of(*tokenizer, found), rest + " and");
    EXPECT_EQ(found.back(), tokenizer->encode(" and", kPlain).back());
  }
}

TEST(StringMatch, EndsWhereTheTargetCannotSpellTheText) {
  const auto tokenizer = open_tokenizer("gpt2");
  const TokenId comma = tokenizer->encode(",", kPlain).front();
  // The target can choose ids up to the comma's.
  const StringMatch match(*tokenizer, comma + 1);
  const std::vector<TokenId> found = split(match, "a", ",,\xe2\x96\x81");
  for (const TokenId token : found) EXPECT_LE(token, comma);
  EXPECT_LT(found.size(), 4u);
}

}  // namespace
}  // namespace outrider
