// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <sstream>

#include "tokenizer/byte_mapping.h"
#include "tokenizer/input_marks.h"

namespace outrider {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// All 256 bytes (id = byte), then "ab", "abc", "<eot>" (control) and "õ" (user-defined).
TokenizerSpec byte_level_spec() {
  TokenizerSpec spec;
  for (int byte = 0; byte < 256; ++byte)
    spec.pieces.push_back(map_bytes(std::string(1, static_cast<char>(byte))));
  for (const char* piece : {"ab", "abc", "<eot>"}) spec.pieces.emplace_back(piece);
  spec.merges = {{"a", "b"}, {"ab", "c"}};
  spec.attributes.assign(spec.pieces.size(), TokenAttribute::kNormal);
  spec.attributes[258] = TokenAttribute::kControl;
  return spec;
}

// A vocabulary as in a Llama 2 GGUF: scores, no merges.
TokenizerSpec scored_spec() {
  TokenizerSpec spec;
  spec.kind = TokenizerKind::kSentencePiece;
  spec.pieces = {"<unk>",
                 "<s>",
                 "\xE2\x96\x81",
                 "a",
                 "b",
                 "ab",
                 "\xE2\x96\x81"
                 "a",
                 "<0xC3>",
                 "<0xA9>"};
  spec.attributes.assign(spec.pieces.size(), TokenAttribute::kNormal);
  spec.attributes[0] = TokenAttribute::kUnknown;
  spec.attributes[1] = TokenAttribute::kControl;
  spec.attributes[7] = spec.attributes[8] = TokenAttribute::kByte;
  spec.scores = {0, 0, -9, -9, -9, -1, -2, 0, 0};
  spec.unknown = 0;
  spec.bos = 1;
  spec.add_bos = true;
  spec.add_space_prefix = true;
  return spec;
}

std::shared_ptr<const Tokenizer> create(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return tokenizer.ok() ? *tokenizer : nullptr;
}

std::string refusal(TokenizerSpec spec) {
  const auto tokenizer = Tokenizer::create(std::move(spec));
  return tokenizer.ok() ? "accepted" : tokenizer.error().message;
}

TEST(Tokenizer, MergesByRank) {
  const auto tokenizer = create(byte_level_spec());
  EXPECT_THAT(tokenizer->encode("abcab"), ElementsAre(257, 256));
  EXPECT_THAT(tokenizer->encode("bab"), ElementsAre('b', 256));
  EXPECT_THAT(tokenizer->encode(""), ElementsAre());
}

// A word that comes again is taken from the first time, until there are too many words to keep. A byte that
// is no character ends a run of words, of which only long ones are kept.
TEST(Tokenizer, LongTextsHaveTheTokensOfTheirWords) {
  TokenizerSpec spec = byte_level_spec();
  spec.split_patterns = {{.pattern = " "}};
  const auto tokenizer = create(std::move(spec));
  std::string text;
  std::vector<TokenId> expected;
  uint32_t state = 1;
  for (int i = 0; i < 120'000; ++i) {
    std::string word;
    state = state * 1664525 + 1013904223;
    const bool is_common = i % 3 == 0;
    for (uint32_t n = state >> (is_common ? 24 : 10); n > 0; n /= 4)
      word += std::array{"a", "b", "c", "\xC3\xA9"}[n % 4];
    if (i % 50 == 0) word += std::string(state >> 28, 'a');  // also longer than what is kept
    if (i % 10'007 == 0) word += '\xC3';
    for (const std::string& part : {word, std::string(" ")}) {
      const auto tokens = tokenizer->encode(part);
      expected.insert(expected.end(), tokens.begin(), tokens.end());
      text += part;
    }
  }
  EXPECT_EQ(tokenizer->encode(text), expected);
}

TEST(Tokenizer, MergesByScore) {
  const auto tokenizer = create(scored_spec());
  // "ab" scores better than "\u2581a".
  EXPECT_THAT(tokenizer->encode("ab"), ElementsAre(1, 2, 5));
  EXPECT_THAT(tokenizer->encode("a"), ElementsAre(1, 6));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("ab")), "ab");
}

TEST(Tokenizer, FallsBackToBytesThenToUnknown) {
  const auto tokenizer = create(scored_spec());
  EXPECT_THAT(tokenizer->encode("\xC3\xA9"), ElementsAre(1, 2, 7, 8));
  EXPECT_THAT(tokenizer->encode("\xC3\xA8"), ElementsAre(1, 2, 0));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{2, 7, 8}), "\xC3\xA9");
}

TEST(Tokenizer, SpellingOfABytePieceIsPlainText) {
  TokenizerSpec spec = scored_spec();
  for (const char* piece : {"<", "0", "x", "C", "3", ">", "<0", "<0x", "<0xC", "<0xC3"}) {
    spec.pieces.emplace_back(piece);
    spec.attributes.push_back(TokenAttribute::kNormal);
    spec.scores.push_back(-1);
  }
  const auto tokenizer = create(std::move(spec));
  EXPECT_THAT(tokenizer->encode("<0xC3>"), ElementsAre(1, 2, 18, 14));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("<0xC3>")), "<0xC3>");
}

TEST(Tokenizer, ControlTokensAreTextUnlessParsed) {
  const auto tokenizer = create(byte_level_spec());
  EXPECT_THAT(tokenizer->encode("a<eot>b"), ElementsAre('a', 258, 'b'));
  EXPECT_THAT(tokenizer->encode("<eot>", {.parse_special = false}), ElementsAre('<', 'e', 'o', 't', '>'));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{'a', 258, 'b'}), "ab");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{'a', 258, 'b'}, false), "a<eot>b");
  EXPECT_TRUE(tokenizer->is_control(258));
  EXPECT_EQ(tokenizer->token_bytes(258), "");
  EXPECT_EQ(tokenizer->token_piece(258), "<eot>");
}

TEST(Tokenizer, MarkedControlTokensAreText) {
  const auto tokenizer = Tokenizer::create(byte_level_spec()).value();
  const std::string text =
      "a<eot><<eot>\xEF\xB7\x90\xEF\xB7\x91\xEF\xB7\x92";  // the text itself has the characters of marks
  const std::string marked = tokenizer->mark_input(text);
  EXPECT_EQ(drop_input_marks(marked), text);
  EXPECT_EQ(tokenizer->encode(marked, {.drop_marks = true}),
            tokenizer->encode(text, {.parse_special = false}));
  // Control tokens outside the marked part are still tokens.
  EXPECT_EQ(tokenizer->encode("<eot>" + tokenizer->mark_input("<eot>") + "<eot>", {.drop_marks = true}),
            (std::vector<TokenId>{258, '<', 'e', 'o', 't', '>', 258}));
}

TEST(Tokenizer, UserDefinedLetterIsNotTheByteThatIsSpelledLikeIt) {
  TokenizerSpec spec = byte_level_spec();
  spec.pieces[0xF5] = "unused";
  spec.pieces.emplace_back("\xC3\xB5");  // "õ", GPT-2's spelling of byte F5
  spec.attributes.push_back(TokenAttribute::kUserDefined);
  const auto tokenizer = create(std::move(spec));
  EXPECT_THAT(tokenizer->encode("\xC3\xB5"), ElementsAre(259));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{259}), "\xC3\xB5");
  EXPECT_THAT(tokenizer->encode("\xF5"), ElementsAre());
}

TEST(Tokenizer, InvalidUtf8IsEncodedByteByByteAndComesBack) {
  const auto tokenizer = create(byte_level_spec());
  const std::string text = "ab\xFF\xC3(\xE2\x82 \xED\xA0\x80 ab\xF0\x9F\x98";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  EXPECT_THAT(tokenizer->encode("ab\xFF"
                                "ab"),
              ElementsAre(256, 0xFF, 256));
}

TEST(Tokenizer, IdsOutsideOfTheVocabularyGiveNothing) {
  const auto tokenizer = create(byte_level_spec());
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{-1, 'a', 1 << 30}), "a");
  EXPECT_EQ(tokenizer->token_piece(-5), "");
  EXPECT_FALSE(tokenizer->is_control(259));
}

TEST(Tokenizer, AddsBosAndEos) {
  TokenizerSpec spec = byte_level_spec();
  spec.bos = spec.eos = 258;
  spec.add_bos = spec.add_eos = true;
  const auto tokenizer = create(std::move(spec));
  EXPECT_THAT(tokenizer->encode("a"), ElementsAre(258, 'a', 258));
  EXPECT_THAT(tokenizer->encode("a", {.add_special = false}), ElementsAre('a'));
  EXPECT_TRUE(tokenizer->adds_bos());
}

TEST(Tokenizer, EvilPatternLeavesTheRestUnsplit) {
  TokenizerSpec spec = byte_level_spec();
  spec.split_patterns = {{.pattern = "(?:(?:a|a)*)*x"}};
  const auto tokenizer = create(std::move(spec));
  const std::string text = std::string(2000, 'a');
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(Tokenizer, RefusesWhatCannotBeRight) {
  const auto refuse = [](auto change) {
    TokenizerSpec spec = byte_level_spec();
    change(spec);
    return refusal(std::move(spec));
  };
  EXPECT_THAT(refusal({}), HasSubstr("empty"));
  EXPECT_THAT(refuse([](auto& spec) { spec.pieces[7] = "ab"; }), HasSubstr("7 and 256"));
  EXPECT_THAT(refuse([](auto& spec) { spec.pieces[7] = ""; }), HasSubstr("token 7 is empty"));
  EXPECT_THAT(refuse([](auto& spec) { spec.pieces[7] = "\xFF"; }), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(refuse([](auto& spec) { spec.pieces[7] = std::string(70000, 'x'); }), HasSubstr("at most"));
  EXPECT_THAT(refuse([](auto& spec) { spec.pieces[258] = std::string(5000, 'x'); }),
              HasSubstr("added token 258"));
  EXPECT_THAT(refuse([](auto& spec) { spec.attributes.pop_back(); }), HasSubstr("attributes"));
  EXPECT_THAT(refuse([](auto& spec) { spec.scores = {1}; }), HasSubstr("scores"));
  EXPECT_THAT(refuse([](auto& spec) { spec.merges.emplace_back("a", "q"); }), HasSubstr("merge 2"));
  EXPECT_THAT(refuse([](auto& spec) { spec.merges.emplace_back("nope", "a"); }), HasSubstr("merge 2"));
  EXPECT_THAT(refuse([](auto& spec) { spec.bos = 259; }), HasSubstr("BOS is token 259"));
  EXPECT_THAT(refuse([](auto& spec) { spec.eos = -1; }), HasSubstr("EOS"));
  EXPECT_THAT(refuse([](auto& spec) { spec.add_bos = true; }), HasSubstr("no BOS"));
  EXPECT_THAT(refuse([](auto& spec) { spec.prefix = {1000}; }), HasSubstr("prefix"));
  EXPECT_THAT(refuse([](auto& spec) { spec.added_tokens = {{.id = 300}}; }), HasSubstr("added token"));
  EXPECT_THAT(refuse([](auto& spec) { spec.split_patterns = {{.pattern = "("}}; }),
              HasSubstr("does not compile"));
  TokenizerSpec scored = scored_spec();
  scored.scores[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(refusal(std::move(scored)), HasSubstr("score of token 3"));
}

// U+FFFD stands for the longest beginning of a character, as in texts that Python or Rust decodes.
TEST(StreamDecoder, ReplacesWhatIsLeftOfACharacter) {
  const auto tokenizer = create(byte_level_spec());
  const auto text = [&](const std::vector<int>& bytes) {
    StreamDecoder decoder(tokenizer);
    std::string decoded;
    for (const int byte : bytes) decoded += decoder.push(byte);
    return decoded + decoder.finish();
  };
  const std::string lost = "\xEF\xBF\xBD";
  EXPECT_EQ(text({0xE2, 0x80, 'a'}), lost + "a");
  EXPECT_EQ(text({0xF0, 0x9F, 0x98, 0xC3, 0xA9}), lost + "\xC3\xA9");
  EXPECT_EQ(text({0xF0, 0x9F, 0xF0, 0x9F}), lost + lost);
  EXPECT_EQ(text({0xE0, 0x80, 0x80}), lost + lost + lost);
  EXPECT_EQ(text({0x80, 0xFF}), lost + lost);
}

TEST(StreamDecoder, NeverSplitsACharacter) {
  const auto tokenizer = create(byte_level_spec());
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(0xF0), "");
  EXPECT_EQ(decoder.push(0x9F), "");
  EXPECT_EQ(decoder.push(0x98), "");
  EXPECT_EQ(decoder.push(0x80), "\xF0\x9F\x98\x80");
  EXPECT_EQ(decoder.push(0xE2), "");
  EXPECT_EQ(decoder.push('a'),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(decoder.push(0xC3), "");
  EXPECT_EQ(decoder.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, StripsTheSpacePrefixOnlyAtTheStart) {
  const auto tokenizer = create(scored_spec());
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(1), "");
  EXPECT_EQ(decoder.push(6), "a");
  EXPECT_EQ(decoder.push(6), " a");
}

TEST(GgufPreTokenizer, UnknownNamesAreRefused) {
  TokenizerSpec spec;
  EXPECT_TRUE(apply_gguf_pre_tokenizer("llama-bpe", spec).ok());
  EXPECT_TRUE(spec.ignore_merges);
  EXPECT_TRUE(apply_gguf_pre_tokenizer("qwen2", spec).ok());
  EXPECT_EQ(spec.normalizer, std::vector{NormalizerStep{.kind = NormalizerKind::kNfc}});
  EXPECT_FALSE(spec.ignore_merges);
  const Status unknown = apply_gguf_pre_tokenizer("never-heard-of", spec);
  EXPECT_THAT(unknown.error().message, HasSubstr("never-heard-of"));
  EXPECT_THAT(unknown.error().message, HasSubstr("docs/reference/families.md"));
}

// All names that llama.cpp knows, except afmoe and the names of encoders.
constexpr std::string_view kPreTokenizers =
    "glm5 default gpt-2 phi-2 jais trillion granite-docling exaone4 gigachat mellum a.x-4.0 "
    "modern-bert jina-es jina-de jina-v2-es jina-v2-de mpt olmo llama-bpe llama3 llama-v3 "
    "falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano dbrx smaug-bpe chatglm-bpe glm4 jais-2 "
    "minicpm5 qwen2 megrez kormo f2llmv2 deepseek-r1-qwen stablelm2 hunyuan solar-open grok-2 "
    "qwen35 laguna ufakzeka seed-coder bailingmoe bailingmoe2 llada-moe exaone-moe deepseek-llm "
    "deepseek-coder deepseek-v3 hunyuan-dense hy_v4 joyai-llm spark2_5 youtu smollm starcoder "
    "refact codeshell exaone minerva-7b mellum2 command-r falcon bloom poro-chat gpt3-finnish "
    "viking chameleon tekken gpt-4o llama4 kanana2 talkie minimax-m2 granite-embed-multi-97m "
    "tiny_aya cohere2moe superbpe kimi-k2 ";

TEST(GgufPreTokenizer, EveryPatternCompiles) {
  const TokenizerSpec empty = byte_level_spec();
  std::istringstream names{std::string(kPreTokenizers)};
  for (std::string name; names >> name;) {
    TokenizerSpec spec = empty;
    ASSERT_TRUE(apply_gguf_pre_tokenizer(name, spec).ok()) << name;
    spec.add_bos = false;  // the vocabulary has none
    const std::string text = "Hello it's  12345 \xE4\xBD\xA0\xE5\xA5\xBD\r\n !?";
    const auto tokenizer = create(std::move(spec));
    ASSERT_NE(tokenizer, nullptr) << name;
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text) << name;
  }
}

}  // namespace
}  // namespace outrider
