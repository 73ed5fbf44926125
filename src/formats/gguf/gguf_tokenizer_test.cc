// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "formats/gguf/test_gguf.h"
#include "formats/test_outcome.h"
#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

using namespace testing_gguf;  // NOLINT: helpers of this test

struct Vocabulary {
  const char* name;
  TokenizerKind kind;
  size_t size;
  size_t merges;
  bool add_bos;
};

class VocabularyTest : public testing::TestWithParam<Vocabulary> {
 protected:
  // These are public vocabularies of llama.cpp, which are not part of this repository.
  static std::filesystem::path path(const std::string& name) {
    return OUTRIDER_SOURCE_DIR "/../shared/data/tokenizer/ggml-vocab-" + name + ".gguf";
  }
};

TEST_P(VocabularyTest, LoadsAsTokenizer) {
  const Vocabulary& expected = GetParam();
  if (!std::filesystem::exists(path(expected.name))) GTEST_SKIP() << "no " << path(expected.name);
  const auto spec = read_gguf_tokenizer(path(expected.name));
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->kind, expected.kind);
  EXPECT_EQ(spec->pieces.size(), expected.size);
  EXPECT_EQ(spec->merges.size(), expected.merges);
  EXPECT_EQ(spec->add_bos, expected.add_bos);
  EXPECT_EQ(spec->scores.size(), expected.kind == TokenizerKind::kSentencePiece ? expected.size : 0u);
  EXPECT_EQ(spec->add_space_prefix, expected.kind == TokenizerKind::kSentencePiece);
  const auto tokenizer = Tokenizer::create(*spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ((*tokenizer)->decode((*tokenizer)->encode("Hello, world")), "Hello, world");
}

INSTANTIATE_TEST_SUITE_P(
    SharedData, VocabularyTest,
    testing::Values(Vocabulary{"gpt-2", TokenizerKind::kByteLevelBpe, 50257, 50000, false},
                    Vocabulary{"gpt-neox", TokenizerKind::kByteLevelBpe, 50432, 50009, false},
                    Vocabulary{"mpt", TokenizerKind::kByteLevelBpe, 50432, 50009, false},
                    Vocabulary{"falcon", TokenizerKind::kByteLevelBpe, 65024, 64784, false},
                    Vocabulary{"starcoder", TokenizerKind::kByteLevelBpe, 49152, 48872, false},
                    Vocabulary{"refact", TokenizerKind::kByteLevelBpe, 49216, 48891, false},
                    Vocabulary{"deepseek-coder", TokenizerKind::kByteLevelBpe, 32256, 31757, true},
                    Vocabulary{"deepseek-llm", TokenizerKind::kByteLevelBpe, 102400, 99757, true},
                    Vocabulary{"llama-spm", TokenizerKind::kSentencePiece, 32000, 0, true},
                    Vocabulary{"phi-3", TokenizerKind::kSentencePiece, 32064, 0, true},
                    Vocabulary{"baichuan", TokenizerKind::kSentencePiece, 64000, 0, true}),
    [](const auto& test) {
      std::string name = test.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST_F(VocabularyTest, WordPieceIsRefusedByName) {
  if (!std::filesystem::exists(path("bert-bge"))) GTEST_SKIP() << "no " << path("bert-bge");
  expect_refused(read_gguf_tokenizer(path("bert-bge")), "tokenizer model 'bert' is not supported");
}

Result<TokenizerSpec> spec_of(const File& file) {
  const std::string bytes = file.serialize().bytes;
  OUTRIDER_TRY(const GgufFile parsed, parse_gguf(std::as_bytes(std::span(bytes)), "x.gguf"));
  return gguf_tokenizer_spec(parsed, "x.gguf");
}

TEST(GgufTokenizerTest, FlagsOfTheFileWinOverThoseOfTheModel) {
  File file = tiny_model();
  EXPECT_TRUE(spec_of(file)->add_bos);
  EXPECT_TRUE(spec_of(file)->add_space_prefix);
  file.key("tokenizer.ggml.add_bos_token") = boolean(0);
  file.key("tokenizer.ggml.add_eos_token") = boolean(1);
  file.key("tokenizer.ggml.add_space_prefix") = boolean(0);
  const auto spec = spec_of(file);
  EXPECT_FALSE(spec->add_bos);
  EXPECT_TRUE(spec->add_eos);
  EXPECT_FALSE(spec->add_space_prefix);
}

TEST(GgufTokenizerTest, ByteLevelDetails) {
  File file = tiny_model();
  file.key("tokenizer.ggml.model") = text("gpt2");
  file.key("tokenizer.ggml.merges") = strings({"a b", " b a"});
  EXPECT_FALSE(spec_of(file)->add_bos);
  EXPECT_FALSE(spec_of(file)->ignore_merges);
  EXPECT_EQ(spec_of(file)->merges[1], std::pair(std::string(" b"), std::string("a")));
  file.key("tokenizer.ggml.pre") = text("llama-bpe");
  EXPECT_TRUE(spec_of(file)->add_bos);
  EXPECT_TRUE(spec_of(file)->ignore_merges);
}

TEST(GgufTokenizerTest, UnigramDetails) {
  File file = tiny_model();
  file.key("tokenizer.ggml.model") = text("t5");
  const auto plain = spec_of(file);
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(plain->kind, TokenizerKind::kUnigram);
  EXPECT_EQ(plain->scores[4], -2);
  EXPECT_TRUE(plain->fuse_unknown);
  EXPECT_TRUE(plain->add_eos);
  EXPECT_FALSE(plain->add_space_prefix);
  EXPECT_TRUE(plain->normalizer.empty());

  file.key("tokenizer.ggml.remove_extra_whitespaces") = boolean(1);
  const auto trimmed = spec_of(file);
  ASSERT_EQ(trimmed->normalizer.size(), 2u);
  EXPECT_EQ(trimmed->normalizer[0].kind, NormalizerKind::kTrim);
  EXPECT_EQ(trimmed->normalizer[1].pattern, " {2,}");

  file.key("tokenizer.ggml.treat_whitespace_as_suffix") = boolean(1);
  expect_refused(spec_of(file), "spaces as suffixes are not supported");
  file.key("tokenizer.ggml.precompiled_charsmap") = numbers<int8_t>(kI8, {1});
  expect_refused(spec_of(file), "a precompiled normalizer is not supported");
  file.key("tokenizer.ggml.scores") = numbers<float>(kF32, {0, 0});
  expect_refused(spec_of(file), "tokenizer.ggml.scores must have one entry per token");
}

TEST(GgufTokenizerTest, MergesOfGemma4AreRanked) {
  File file = tiny_model();
  file.key("tokenizer.ggml.model") = text("gemma4");
  expect_refused(spec_of(file), "tokenizer.ggml.merges is missing");
  file.key("tokenizer.ggml.merges") = strings({"a b", "b a"});
  const auto spec = spec_of(file);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->kind, TokenizerKind::kSentencePiece);
  EXPECT_TRUE(spec->add_bos);
  EXPECT_TRUE(spec->fuse_unknown);
  EXPECT_TRUE(spec->scores.empty());
  EXPECT_EQ(spec->merges[1], std::pair(std::string("b"), std::string("a")));
}

TEST(GgufTokenizerTest, Attributes) {
  const auto spec = spec_of(tiny_model());
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->attributes[0], TokenAttribute::kUnknown);
  EXPECT_EQ(spec->attributes[1], TokenAttribute::kControl);
  EXPECT_EQ(spec->attributes[3], TokenAttribute::kNormal);
  EXPECT_EQ(spec->eos, TokenId{2});
  EXPECT_EQ(spec->bos, std::nullopt);
}

}  // namespace
}  // namespace outrider
