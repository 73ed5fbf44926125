// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kBase = R"({
  "added_tokens": [{"id": 5, "content": "<s>", "special": true, "normalized": false}],
  "normalizer": {"type": "NFC"},
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "\\s"}, "behavior": "Isolated", "invert": false},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [5], "tokens": ["<s>"]}}},
  "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "", "fuse_unk": false,
    "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4},
    "merges": ["a b", ["ab", "c"]]}
})";
constexpr std::string_view kByteLevel =
    R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})";

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kBase);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

// The error of reading and checking, or "accepted".
Error outcome(std::string_view json, std::string_view config = "") {
  auto spec = parse_tokenizer_json({.tokenizer = json, .config = config});
  if (!spec.ok()) return spec.error();
  const auto tokenizer = Tokenizer::create(std::move(*spec));
  return tokenizer.ok() ? input_error("accepted") : tokenizer.error();
}

std::shared_ptr<const Tokenizer> load(std::string_view json, std::string_view config = "") {
  auto spec = parse_tokenizer_json({.tokenizer = json, .config = config});
  EXPECT_TRUE(spec.ok()) << spec.error().message;
  return spec.ok() ? *Tokenizer::create(std::move(*spec)) : nullptr;
}

TEST(TokenizerJson, ReadsMergesOfBothSpellings) {
  const auto tokenizer = load(kBase);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_THAT(tokenizer->encode("abcab"), ElementsAre(5, 4, 3));
  EXPECT_EQ(tokenizer->vocab_size(), 6);
  EXPECT_TRUE(tokenizer->is_control(5));
}

TEST(TokenizerJson, ConfigNamesSpecialTokensAndReplacesTheTemplate) {
  const auto silent =
      load(kBase, R"({"bos_token": {"content": "<s>"}, "eos_token": "abc", "add_bos_token": null})");
  EXPECT_EQ(silent->bos(), 5);
  EXPECT_EQ(silent->eos(), 4);
  EXPECT_THAT(silent->encode("a"), ElementsAre(5, 0));
  EXPECT_TRUE(silent->adds_bos());
  const auto without = load(kBase, R"({"bos_token": "<s>", "add_bos_token": false})");
  EXPECT_THAT(without->encode("a"), ElementsAre(0));
  const auto both =
      load(kBase, R"({"bos_token": "<s>", "eos_token": "c", "add_bos_token": true, "add_eos_token": true})");
  EXPECT_THAT(both->encode("a"), ElementsAre(5, 0, 2));
}

// As in the files of tiktoken's vocabularies: unused ids before special tokens.
TEST(TokenizerJson, IdsOfTheVocabularyMayHaveGaps) {
  std::string json = replaced(R"("abc": 4})", R"("abc": 4, "<s>": 7, "<end>": 9})");
  json.replace(json.find(R"("id": 5)"), 7, R"("id": 9, "content": "<end>", "special": true}, {"id": 7)");
  json.replace(json.find(R"("ids": [5])"), 10, R"("ids": [7])");
  const auto tokenizer = load(std::string_view(json));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_THAT(tokenizer->encode("abc<end>"), ElementsAre(7, 4, 9));
  EXPECT_EQ(tokenizer->vocab_size(), 10);
  EXPECT_THAT(tokenizer->unused(), ElementsAre(5, 6, 8));
  EXPECT_EQ(tokenizer->decode({{5, 4, 8}}, false), "abc");
  EXPECT_EQ(tokenizer->find_piece(""), std::nullopt);
  EXPECT_THAT(load(kBase)->unused(), testing::IsEmpty());
}

// Holes among ordinary tokens, as Kimi's vocabulary has, and before the first one.
TEST(TokenizerJson, GapsMayBeAnywhereBelowTheLargestId) {
  const auto among = load(std::string_view(replaced(R"("abc": 4)", R"("abc": 7)")));
  ASSERT_NE(among, nullptr);
  EXPECT_THAT(among->unused(), ElementsAre(4, 6));
  EXPECT_THAT(among->encode("abcab"), ElementsAre(5, 7, 3));
  EXPECT_EQ(among->decode({{4, 7, 6}}, false), "abc");
  const auto before = load(std::string_view(replaced(R"("a": 0)", R"("a": 6)")));
  ASSERT_NE(before, nullptr);
  EXPECT_THAT(before->unused(), ElementsAre(0));
  EXPECT_THAT(before->encode("ba"), ElementsAre(5, 1, 6));
  EXPECT_EQ(before->decode({{0, 6}}, false), "a");
}

TEST(TokenizerJson, TemplatesGetSpecialTokensOfBothFiles) {
  const auto spec = parse_tokenizer_json(
      {.tokenizer = kBase,
       .config = R"({"pad_token": "<pad>", "eos_token": null, "unk_token": {"content": "b"}})",
       .special_tokens = R"({"bos_token": {"content": "<s>"}, "eos_token": "abc", "unk_token": "c",
                             "mask_token": "a", "additional_special_tokens": ["x"]})"});
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->bos, 5);
  EXPECT_EQ(spec->eos, 4);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"pad_token", "<pad>"}, {"unk_token", "b"}, {"mask_token", "a"}};
  EXPECT_EQ(spec->template_tokens, expected);
  const auto broken = parse_tokenizer_json({.tokenizer = kBase, .config = "", .special_tokens = "[1"});
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.error().message, HasSubstr("special_tokens_map.json"));
}

// Tokens of encoders, by the map alone or by the configuration alone.
TEST(TokenizerJson, TemplatesGetSeparatorsAndClassifiers) {
  using Names = std::vector<std::pair<std::string, std::string>>;
  const auto tokens_of = [](std::string_view config, std::string_view map) {
    const auto spec = parse_tokenizer_json({.tokenizer = kBase, .config = config, .special_tokens = map});
    EXPECT_TRUE(spec.ok()) << spec.error().message;
    return spec.ok() ? spec->template_tokens : Names();
  };
  const Names expected = {{"cls_token", "[CLS]"}, {"sep_token", "[SEP]"}};
  const std::string_view named =
      R"({"cls_token": "[CLS]", "sep_token": {"content": "[SEP]", "lstrip": false}})";
  EXPECT_EQ(tokens_of("", named), expected);
  EXPECT_EQ(tokens_of(named, ""), expected);
  EXPECT_EQ(tokens_of(named, R"({"cls_token": "other"})"), expected);
  // Tokens of a family's own, as transformers 5.24 gives them.
  const Names own = {{"image_token", "<img>"}, {"audio_token", "<a>"}};
  EXPECT_EQ(
      tokens_of(R"({"image_token": "<img>", "extra_special_tokens": {"audio_token": "<a>"}, "vision": "b",
                          "add_bos_token": false})",
                R"({"additional_special_tokens": ["x"]})"),
      own);
}

struct Change {
  std::string_view from;
  std::string_view to;
  std::string_view message;  // part of the error
};

constexpr Change kRefused[] = {
    // Vocabulary.
    {R"("a": 0)", R"("a": 24)", "id 24 is not in 0..23"},
    {R"("a": 0)", R"("a": -1)", "id -1"},
    {R"("a": 0)", R"("a": 2147483648)", "id 2147483648"},
    {R"("a": 0)", R"("a": 4294967296)", "id 4294967296"},
    {R"("a": 0)", R"("a": 9223372036854775808)", "integer"},
    {R"("a": 0)", R"("a": 1e400)", "integer"},
    {R"("a": 0)", R"("a": 0.5)", "model.vocab.a: expected an integer"},
    {R"("a": 0)", R"("a": "0")", "found a string"},
    {R"("a": 0)", R"("a": null)", "found null"},
    {R"("a": 0)", R"("a": [])", "found an array"},
    {R"("a": 0)", R"("a": 1)", "already"},
    {R"("a": 0)", R"("a": 0, "a": 5)", "already"},
    {R"("a": 0)", R"("a": 0, "": 5)", "empty token"},
    {R"("a": 0)", R"("a": 0, "x\ny": 70)", "model.vocab.x\\x0ay"},
    {R"("a": 0)", R"("<s>": 5)", "merge 0"},
    {R"("abc": 4)", R"("abd": 4)", "merge 1"},
    {R"({"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4})", "[]", "model.vocab: expected an object"},
    {R"({"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4})", "{}", "id 5"},
    {R"("vocab")", R"("vocabulary")", "'vocab'"},
    // Merges.
    {R"("a b")", R"("ab")", "model.merges[0]"},
    {R"("a b")", R"("a b c")", "one space"},
    {R"("a b")", R"("a  b")", "one space"},
    {R"("a b")", R"(" ")", "merge 0"},
    {R"("a b")", R"("a d")", "merge 0"},
    {R"("a b")", R"("b a")", "merge 0"},
    {R"("a b")", R"("abc abc")", "merge 0"},
    {R"("a b")", "7", "model.merges[0]"},
    {R"("a b")", "null", "model.merges[0]"},
    {R"(["ab", "c"])", R"(["ab"])", "model.merges[1]"},
    {R"(["ab", "c"])", R"(["a", "b", "c"])", "two strings"},
    {R"(["ab", "c"])", R"([1, 2])", "two strings"},
    {R"(["a b", ["ab", "c"]])", "{}", "model.merges: expected an array"},
    {R"("merges")", R"("merge")", "'merges'"},
    // Model.
    {R"("type": "BPE")", R"("type": "WordPiece")", "supported: BPE"},
    {R"("type": "BPE")", R"("type": "WordPiece")", "WordPiece"},
    {R"("type": "BPE")", R"("type": 3)", "model.type: expected a string"},
    {R"("dropout": null)", R"("dropout": 0.1)", "dropout"},
    {R"("unk_token": null)", R"("unk_token": "<unk>")", "unk_token"},
    {R"("unk_token": null)", R"("unk_token": 1)", "expected a string"},
    {R"("continuing_subword_prefix": "")", R"("continuing_subword_prefix": "##")", "##"},
    {R"("continuing_subword_prefix": "")", R"("end_of_word_suffix": "</w>")", "</w>"},
    {R"("fuse_unk": false)", R"("fuse_unk": "no")", "expected a boolean"},
    {R"("fuse_unk": false)", R"("byte_fallback": true)", "byte_fallback"},
    {R"("fuse_unk": false)", R"("ignore_merges": 1)", "ignore_merges"},
    {R"("model")", R"("models")", "'model'"},
    // Added tokens.
    {R"("id": 5, "content": "<s>")", R"("id": 6, "content": "<s>")", "added_tokens: no token has the id 5"},
    {R"("id": 5, "content": "<s>")", R"("id": 4, "content": "<s>")", "already"},
    {R"("id": 5, "content": "<s>")", R"("id": -5, "content": "<s>")", "id -5"},
    {R"("id": 5, "content": "<s>")", R"("id": 5, "content": "")", "empty string"},
    {R"("id": 5, "content": "<s>")", R"("id": 5, "content": "a")", "both spelled"},
    {R"("id": 5, "content": "<s>")", R"("id": 5, "content": 7)", "expected a string"},
    {R"("id": 5, "content": "<s>")", R"("id": "5", "content": "<s>")", "expected an integer"},
    {R"("id": 5, "content": "<s>")", R"("id": 5)", "content"},
    {R"("id": 5, "content": "<s>")", R"("content": "<s>")", "'id'"},
    {R"("special": true)", R"("special": 1)", "expected a boolean"},
    {R"("normalized": false)", R"("normalized": "x")", "expected a boolean"},
    {R"("normalized": false)", R"("lstrip": [])", "expected a boolean"},
    {R"({"id": 5, "content": "<s>", "special": true, "normalized": false})", "5", "added_tokens[0]"},
    {R"([{"id": 5, "content": "<s>", "special": true, "normalized": false}])", "{}",
     "added_tokens: expected an array"},
    // Normalizer.
    {R"({"type": "NFC"})", R"({"type": "Nmt"})", "supported: NFC"},
    {R"({"type": "NFC"})", R"({"type": "Precompiled"})", "Precompiled"},
    {R"({"type": "NFC"})", R"({"type": "Sequence"})", "normalizers"},
    {R"({"type": "NFC"})", R"({"type": "Sequence", "normalizers": 1})", "expected an array"},
    {R"({"type": "NFC"})", R"({"type": "Sequence", "normalizers": [{"type": "StripAccents"}]})",
     "normalizers[0]"},
    {R"({"type": "NFC"})", R"({"type": "Strip", "strip_left": 1})", "expected a boolean"},
    {R"({"type": "NFC"})", R"({"type": "Prepend", "prepend": "▁"})", "ByteLevel together"},
    {R"({"type": "NFC"})", R"({"type": "Replace", "pattern": {"Regex": "("}, "content": "b"})",
     "does not compile"},
    {R"({"type": "NFC"})", R"({"type": "Replace", "content": "b"})", "pattern"},
    {R"({"type": "NFC"})", "{}", "'type'"},
    {R"({"type": "NFC"})", "3", "normalizer"},
    // Pre-tokenizer.
    {kByteLevel, R"({"type": "Whitespace"})", "Whitespace"},
    {kByteLevel, R"({"type": "BertPreTokenizer"})", "supported: ByteLevel"},
    {kByteLevel, R"({"type": "Digits"})", "expected ByteLevel, Metaspace"},
    {kByteLevel, R"({"type": "Metaspace"})", "after another"},
    {kByteLevel, R"({"type": "ByteLevel"})", "add_prefix_space after"},
    {kByteLevel, R"({"type": "ByteLevel", "add_prefix_space": 0})", "expected a boolean"},
    {R"({"Regex": "\\s"})", R"({"Regex": "("})", "does not compile"},
    {R"({"Regex": "\\s"})", R"({"Regex": 1})", "expected a string"},
    {R"({"Regex": "\\s"})", R"({"String": ""})", "empty one"},
    {R"({"Regex": "\\s"})", "{}", "pattern"},
    {R"({"Regex": "\\s"})", R"("\\s")", "pattern"},
    {R"("behavior": "Isolated")", R"("behavior": "Sideways")", "Sideways"},
    {R"("invert": false)", R"("invert": null, "invert": 2)", "accepted"},
    // Post-processor and decoder.
    {R"("type": "TemplateProcessing")", R"("type": "RobertaProcessing")", "'cls'"},
    {R"("type": "TemplateProcessing")", R"("type": "RobertaProcessing", "cls": ["a"], "sep": ["b", 1])",
     "post_processor.cls"},
    {R"("type": "TemplateProcessing")", R"("type": "PairTemplate")", "supported: ByteLevel"},
    {R"("ids": [5])", R"("ids": [6])", "prefix of texts is token 6"},
    {R"("ids": [5])", R"("ids": [-1])", "token id"},
    {R"("ids": [5])", R"("ids": [4294967296])", "token id"},
    {R"("ids": [5])", R"("ids": "5")", "expected an array"},
    {R"({"Sequence": {"id": "A", "type_id": 0}})", R"({"SpecialToken": {"id": "<s>"}})", "Sequence"},
    {R"({"SpecialToken": {"id": "<s>", "type_id": 0}})", R"({"SpecialToken": {"id": "</s>"}})", "</s>"},
    {R"({"SpecialToken": {"id": "<s>", "type_id": 0}})", R"({"Sequence": {"id": "A"}})", "twice"},
    {R"({"SpecialToken": {"id": "<s>", "type_id": 0}})", R"({"Other": 1})", "SpecialToken"},
    {R"({"type": "ByteLevel"})", R"({"type": "WordPiece"})", "decoder"},
};

constexpr std::string_view kUnigram = R"({
  "added_tokens": [{"id": 0, "content": "<unk>", "special": true}],
  "pre_tokenizer": {"type": "Metaspace"},
  "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false,
            "vocab": [["<unk>", 0], ["▁", -3], ["a", -2], ["▁a", -4.5], ["aa", -4], ["b", -9]]}})";

TEST(TokenizerJson, UnigramTakesTheLikeliestPiecesAndTheFirstOfEqualOnes) {
  const auto spec = parse_tokenizer_json({.tokenizer = kUnigram, .config = ""});
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  const auto tokenizer = Tokenizer::create(*spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_THAT((*tokenizer)->encode("a"), ElementsAre(3));
  // Two pieces "a" are as likely as one "aa". The longer piece is found first.
  EXPECT_THAT((*tokenizer)->encode("aaa"), ElementsAre(3, 4));
  EXPECT_THAT((*tokenizer)->encode("xyb"), ElementsAre(1, 0, 5));
  EXPECT_EQ((*tokenizer)->decode({{3, 4}}), "aaa");
}

TEST(TokenizerJson, RefusesMalformedUnigramVocabularies) {
  const std::pair<std::string_view, std::string_view> changes[] = {
      {R"(["▁", -3])", R"(["▁"])"},         {R"(["▁", -3])", R"(["▁", "x"])"},
      {R"(["▁", -3])", R"(["", -3])"},      {R"("unk_id": 0)", R"("unk_id": 7)"},
      {R"("Metaspace")", R"("ByteLevel")"}, {R"(["▁", -3])", "7"},
  };
  for (const auto& [from, to] : changes) {
    std::string text(kUnigram);
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    EXPECT_FALSE(parse_tokenizer_json({.tokenizer = text, .config = ""}).ok()) << to;
  }
}

TEST(TokenizerJson, RefusesMalformedAndUnsupportedFieldsByName) {
  for (const Change& change : kRefused) {
    const Error error = outcome(replaced(change.from, change.to));
    EXPECT_THAT(error.message, HasSubstr(change.message)) << change.from << " -> " << change.to;
    EXPECT_EQ(error.message.find('\n'), std::string::npos);
    EXPECT_EQ(error.kind, ErrorKind::kInput);
  }
}

TEST(TokenizerJson, RefusesWhatIsNoJsonObject) {
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[]"), std::string("{"), std::string("{}"),
        std::string("\0", 1), std::string("{\"model\": \"\xFF\"}"), std::string(R"({"model": "\ud800"})"),
        std::string("{} {}"), std::string(1'000'000, '['),
        "{\"model\":" + std::string(100, '[') + std::string(100, ']') + "}"}) {
    const Error error = outcome(text);
    EXPECT_NE(error.message, "accepted");
    EXPECT_EQ(error.kind, ErrorKind::kInput);
  }
}

TEST(TokenizerJson, EveryTruncationIsRefused) {
  for (size_t size = 0; size < kBase.size(); ++size)
    EXPECT_NE(outcome(kBase.substr(0, size)).message, "accepted");
}

TEST(TokenizerJson, RefusesMalformedConfig) {
  EXPECT_THAT(outcome(kBase, R"({"bos_token": "<none>"})").message, HasSubstr("<none>"));
  EXPECT_THAT(outcome(kBase, R"({"bos_token": 1})").message, HasSubstr("bos_token: expected a string"));
  EXPECT_THAT(outcome(kBase, R"({"eos_token": {}})").message, HasSubstr("content"));
  EXPECT_THAT(outcome(kBase, R"({"add_bos_token": "yes"})").message,
              HasSubstr("add_bos_token: expected a boolean"));
  EXPECT_THAT(outcome(kBase, "[").message, HasSubstr("tokenizer_config.json"));
  EXPECT_EQ(outcome(kBase, R"({"pad_token": "<none>"})").message, "accepted");
}

TEST(TokenizerJson, ReadsADirectory) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / "outrider_tokenizer_json";
  std::filesystem::remove_all(directory);
  const auto missing = read_tokenizer_json(directory);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::kIo);
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "tokenizer.json") << kBase;
  std::ofstream(directory / "tokenizer_config.json") << R"({"eos_token": "c"})";
  const auto spec = read_tokenizer_json(directory);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->eos, 2);
  std::filesystem::remove_all(directory);
}

constexpr std::string_view kGpt2Vocabulary =
    R"({"<pad>": 1, "</s>": 2, "a": 0, "b": 3, "\u0120": 4, "ab": 5, "\u0120ab": 6})";
constexpr std::string_view kGpt2Merges = "#version: 0.2\na b\n\u0120 ab\n";
constexpr std::string_view kGpt2Config =
    R"({"bos_token": {"content": "</s>"}, "eos_token": "</s>", "pad_token": "<pad>", "add_bos_token": true,
        "add_prefix_space": false})";

TEST(Gpt2Files, AreReadWithTheirConfiguration) {
  const auto spec = parse_gpt2_files(
      {.name = "m", .vocabulary = kGpt2Vocabulary, .merges = kGpt2Merges, .config = kGpt2Config});
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  const auto tokenizer = Tokenizer::create(*spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_THAT((*tokenizer)->encode("ab ab</s>ba"), ElementsAre(2, 5, 6, 2, 3, 0));
  EXPECT_EQ((*tokenizer)->decode({{2, 5, 6}}), "ab ab");
}

TEST(Gpt2Files, AreReadFromADirectory) {
  const std::filesystem::path directory = std::filesystem::path(testing::TempDir()) / "outrider_gpt2_files";
  std::filesystem::remove_all(directory);
  EXPECT_FALSE(read_gpt2_files(directory).ok());
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "vocab.json") << kGpt2Vocabulary;
  const auto without_merges = read_gpt2_files(directory);
  ASSERT_FALSE(without_merges.ok());
  EXPECT_THAT(without_merges.error().message, HasSubstr("merges.txt"));
  std::ofstream(directory / "merges.txt") << kGpt2Merges;
  EXPECT_FALSE(read_gpt2_files(directory)->eos.has_value()) << "nothing names it";
  std::ofstream(directory / "tokenizer_config.json") << R"({"add_bos_token": false})";
  std::ofstream(directory / "special_tokens_map.json") << R"({"eos_token": "</s>"})";
  const auto spec = read_gpt2_files(directory);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->eos, 2);
  const auto tokenizer = Tokenizer::create(*spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_THAT((*tokenizer)->encode("ab ab"), ElementsAre(5, 6));
  std::filesystem::remove_all(directory);
}

TEST(Gpt2Files, MalformedOnesAreRefused) {
  const auto outcome_of = [](std::string_view vocabulary, std::string_view merges) {
    const auto spec =
        parse_gpt2_files({.name = "m", .vocabulary = vocabulary, .merges = merges, .config = ""});
    return spec.ok() ? std::string("accepted") : spec.error().message;
  };
  EXPECT_THAT(outcome_of("[]", ""), HasSubstr("JSON object"));
  EXPECT_THAT(outcome_of(R"({"a": 4})", ""), HasSubstr("m/vocab.json"));
  EXPECT_EQ(outcome_of(R"({"a": 3})", ""), "accepted");
  EXPECT_THAT(outcome_of(R"({"a": 0, "b": 0})", ""), HasSubstr("already"));
  EXPECT_THAT(outcome_of(R"({"a": 0})", "#version: 0.2\na\n"), HasSubstr("m/merges.txt: line 2"));
  EXPECT_THAT(outcome_of(R"({"a": 0})", "a b c\n"), HasSubstr("line 1"));
}

}  // namespace
}  // namespace outrider
