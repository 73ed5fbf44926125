// SPDX-License-Identifier: Apache-2.0
// Exports are compared with the files of tests/data, which the `gguf` package wrote, and are read back.
#include "formats/gguf/gguf_export.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstring>
#include <fstream>

#include "formats/gguf/gguf_model.h"
#include "formats/gguf/gguf_tokenizer.h"
#include "formats/gguf/gguf_tokenizer_export.h"
#include "formats/model_file.h"
#include "formats/test_outcome.h"
#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

const fs::path kData = OUTRIDER_SOURCE_DIR "/tests/data";

std::string_view bytes_in(const TensorView& view) {
  return {reinterpret_cast<const char*>(view.data), static_cast<size_t>(view.bytes())};
}

std::string file_of(const GgufModel& model) {
  std::vector<GgufTensorInfo> infos;
  for (const GgufTensor& tensor : model.tensors) {
    infos.push_back({tensor.name, tensor.view.dtype, tensor.view.shape});
  }
  std::string file = gguf_header(model.metadata, infos);
  for (const GgufTensor& tensor : model.tensors) {
    file += bytes_in(tensor.view);
    file.append(static_cast<size_t>(gguf_padding(tensor.view.bytes())), '\0');
  }
  return file;
}

std::span<const std::byte> as_bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST(GgufWriterTest, WritesTheFormatByteForByte) {
  GgufMetadataWriter metadata;
  metadata.set_u32("b", 7);
  metadata.set_string("a", "hi");
  const GgufTensorInfo tensors[] = {{"t", DType::kQ8_0, {2, 32}}, {"u", DType::kF32, {3}}};
  const std::string expected(
      "GGUF\3\0\0\0"
      "\2\0\0\0\0\0\0\0"
      "\2\0\0\0\0\0\0\0"
      "\1\0\0\0\0\0\0\0"
      "a"
      "\10\0\0\0"
      "\2\0\0\0\0\0\0\0"
      "hi"
      "\1\0\0\0\0\0\0\0"
      "b"
      "\4\0\0\0"
      "\7\0\0\0"
      "\1\0\0\0\0\0\0\0"
      "t"
      "\2\0\0\0"
      "\40\0\0\0\0\0\0\0"
      "\2\0\0\0\0\0\0\0"
      "\10\0\0\0"
      "\0\0\0\0\0\0\0\0"
      "\1\0\0\0\0\0\0\0"
      "u"
      "\1\0\0\0"
      "\3\0\0\0\0\0\0\0"
      "\0\0\0\0"
      "\140\0\0\0\0\0\0\0"
      "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
      160);
  EXPECT_EQ(gguf_header(metadata, tensors), expected);
}

TEST(GgufWriterTest, EveryKindOfValueComesBack) {
  GgufMetadataWriter metadata;
  metadata.set_f32("f", 0.5);
  metadata.set_bool("yes", true);
  metadata.set_strings("words", std::vector<std::string>{"", "a b", "\xc3\xa9"});
  metadata.set_floats("floats", std::vector<float>{-1, 2.5});
  metadata.set_integers("ids", std::vector<int32_t>{-1, 1 << 30});
  const std::string first = gguf_header(metadata, {});
  const auto parsed = parse_gguf(as_bytes_of(first), "first");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->find("f")->number(), 0.5);
  EXPECT_EQ(parsed->find("yes")->boolean(), true);
  EXPECT_EQ(parsed->find("words")->strings(), (std::vector<std::string_view>{"", "a b", "\xc3\xa9"}));
  EXPECT_EQ(parsed->find("floats")->floats(), (std::vector<float>{-1, 2.5}));
  EXPECT_EQ(parsed->find("ids")->integers(), (std::vector<int64_t>{-1, 1 << 30}));
  GgufMetadataWriter copy;
  for (const auto& [key, value] : parsed->metadata) copy.copy(key, value);
  EXPECT_EQ(gguf_header(copy, {}), first);
}

class ExportTest : public testing::TestWithParam<const char*> {};

TEST_P(ExportTest, ReadsBackAsTheSameModel) {
  const fs::path directory = kData / GetParam();
  const auto exported = open_as_gguf(directory);
  ASSERT_TRUE(exported.ok()) << exported.error().message;
  EXPECT_TRUE(exported->notes.empty()) << exported->notes.front();
  const TemporaryDirectory folder;
  const fs::path path = folder.path() / "model.gguf";
  std::ofstream(path, std::ios::binary) << file_of(*exported);
  const auto original = open_model(directory);
  const auto read = open_model(path);
  ASSERT_TRUE(read.ok()) << read.error().message;

  ASSERT_EQ(read->tensors.size(), original->tensors.size());
  for (const auto& [name, view] : original->tensors) {
    EXPECT_EQ(view.shape, read->tensors.at(name).shape) << name;
    EXPECT_TRUE(bytes_in(view) == bytes_in(read->tensors.at(name))) << name;
  }
  EXPECT_EQ(read->config.family, original->config.family == "mistral" ? "llama" : original->config.family);
  EXPECT_EQ(read->config.vocab_size, original->config.vocab_size);
  EXPECT_EQ(read->config.head_dim, original->config.head_dim);
  EXPECT_EQ(read->config.kv_head_count, original->config.kv_head_count);
  EXPECT_EQ(read->config.max_context, original->config.max_context);
  EXPECT_EQ(read->config.layer_traits.front().window, original->config.layer_traits.front().window);
  EXPECT_EQ(read->config.norm.epsilon, original->config.norm.epsilon);
  EXPECT_EQ(read->config.ropes.front().theta, original->config.ropes.front().theta);
  EXPECT_EQ(read->config.ropes.front().scaling.kind, original->config.ropes.front().scaling.kind);
  EXPECT_EQ(read->config.ropes.front().scaling.kind == RopeScalingKind::kLinear,
            read->config.ropes.front().scaling.factor != 1);
  for (const TokenId stop : original->config.stop_tokens) {
    EXPECT_EQ(std::count(read->config.stop_tokens.begin(), read->config.stop_tokens.end(), stop), 1) << stop;
  }
  EXPECT_EQ(read->chat_template, original->chat_template);
  EXPECT_EQ(read->eos_token, original->eos_token);
  EXPECT_EQ(read->tokenizer.merges, original->tokenizer.merges);
  EXPECT_EQ(static_cast<int64_t>(read->tokenizer.pieces.size()), read->config.vocab_size);
}

INSTANTIATE_TEST_SUITE_P(Goldens, ExportTest,
                         testing::Values("formats/llama", "formats/qwen2", "formats/qwen3", "models/llama",
                                         "models/llama_tied", "models/llama_rope_linear",
                                         "models/llama_rope_llama3", "models/mistral", "models/qwen2",
                                         "models/qwen3"));

TEST(GgufExportTest, TensorsAreThoseOfTheReferenceWriter) {
  for (const char* name : {"formats/llama", "formats/qwen2", "formats/qwen3", "models/llama_rope_llama3"}) {
    SCOPED_TRACE(name);
    const auto ours = open_as_gguf(kData / name);
    const auto files = read_gguf_shards(kData / (std::string(name) + ".gguf"));
    ASSERT_TRUE(ours.ok() && files.ok());
    const GgufFile& theirs = *files->gguf();
    for (const GgufTensor& tensor : ours->tensors) {
      const auto found = theirs.tensors.find(tensor.name);
      ASSERT_NE(found, theirs.tensors.end()) << tensor.name;
      if (found->second.dtype == tensor.view.dtype) {
        EXPECT_TRUE(bytes_in(found->second) == bytes_in(tensor.view)) << tensor.name;
      }
    }
    EXPECT_EQ(ours->tensors.size(), theirs.tensors.size());
  }
}

TEST(GgufExportTest, GgufFilesKeepTheirMetadataButNotTheirShards) {
  const auto sharded = open_as_gguf(kData / "formats/split-00002-of-00003.gguf");
  const auto whole = open_as_gguf(kData / "formats/llama.gguf");
  ASSERT_TRUE(sharded.ok() && whole.ok());
  EXPECT_EQ(sharded->files.size(), 3u);
  EXPECT_EQ(sharded->tensors.size(), whole->tensors.size());
  const std::string file = file_of(*sharded);
  const auto parsed = parse_gguf(as_bytes_of(file), "merged");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->find("split.count"), nullptr);
  EXPECT_EQ(file_of(*whole).size(), file.size());
}

std::vector<std::string> golden_texts() {
  simdjson::dom::parser parser;
  std::vector<std::string> texts;
  for (const simdjson::dom::element text :
       parser.load((kData / "tokenizer/texts.json").string()).get_array()) {
    texts.emplace_back(text.get_string().value());
  }
  return texts;
}

// Exports a tokenizer and reads it back. Error: as export_tokenizer.
Result<TokenizerSpec> through_gguf(const TokenizerSpec& spec) {
  GgufMetadataWriter metadata;
  OUTRIDER_TRY([[maybe_unused]] const auto notes,
               export_tokenizer(spec, static_cast<int64_t>(spec.pieces.size()) + 2, &metadata));
  const std::string file = gguf_header(metadata, {});
  OUTRIDER_TRY(const GgufFile parsed, parse_gguf(as_bytes_of(file), "tokenizer"));
  return gguf_tokenizer_spec(parsed, "tokenizer");
}

TEST(TokenizerExportTest, FamiliesThatGgufKnowsGiveTheSameIds) {
  for (const char* family : {"gpt2", "llama3", "qwen2", "gpt4o", "starcoder", "falcon"}) {
    SCOPED_TRACE(family);
    auto spec = read_tokenizer_json(kData / "tokenizer" / family);
    ASSERT_TRUE(spec.ok());
    for (AddedToken& token : spec->added_tokens)
      token = {.id = token.id};  // GGUF has no options of added tokens
    auto read = through_gguf(*spec);
    ASSERT_TRUE(read.ok()) << read.error().message;
    const auto a = Tokenizer::create(*spec);
    const auto b = Tokenizer::create(std::move(read).value());
    ASSERT_TRUE(a.ok() && b.ok());
    for (const std::string& text : golden_texts()) EXPECT_EQ((*a)->encode(text), (*b)->encode(text)) << text;
  }
}

// Every way to join two pieces is a merge, best pieces first: "aba" is "ab" + "a" before "a" + "ba".
TokenizerSpec sentencepiece() {
  TokenizerSpec spec;
  spec.kind = TokenizerKind::kSentencePiece;
  spec.pieces = {"<unk>",
                 "<s>",
                 "</s>",
                 "a",
                 "b",
                 "\xe2\x96\x81",
                 "ab",
                 "ba",
                 "aba",
                 "\xe2\x96\x81"
                 "a"};
  spec.attributes.assign(spec.pieces.size(), TokenAttribute::kNormal);
  for (int id = 0; id < 3; ++id) spec.attributes[static_cast<size_t>(id)] = TokenAttribute::kControl;
  for (int byte = 0; byte < 256; ++byte) {
    char piece[8];
    std::snprintf(piece, sizeof(piece), "<0x%02X>", static_cast<unsigned>(byte));
    spec.pieces.emplace_back(piece);
    spec.attributes.push_back(TokenAttribute::kByte);
  }
  spec.merges = {{"b", "a"}, {"\xe2\x96\x81", "a"}, {"a", "b"}, {"ab", "a"}, {"a", "ba"}};
  spec.add_space_prefix = true;
  spec.unknown = 0;
  spec.bos = 1;
  spec.eos = 2;
  spec.prefix = {1};
  return spec;
}

TEST(TokenizerExportTest, ScoresStandForMerges) {
  const TokenizerSpec spec = sentencepiece();
  auto read = through_gguf(spec);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(read->add_bos);
  EXPECT_EQ(read->attributes[0], TokenAttribute::kUnknown);
  const auto a = Tokenizer::create(spec);
  const auto b = Tokenizer::create(std::move(read).value());
  ASSERT_TRUE(a.ok() && b.ok()) << a.error().message;
  for (const char* text : {"aba", "abab", "babab a aab", "bbaaba z", ""}) {
    EXPECT_EQ((*a)->encode(text), (*b)->encode(text)) << text;
  }
}

TEST(TokenizerExportTest, RefusesWhatGgufCannotSay) {
  const auto refused = [](TokenizerSpec spec, std::string_view part) {
    expect_refused(through_gguf(spec), part);
  };
  TokenizerSpec spec = sentencepiece();
  spec.merges.pop_back();  // "a" + "ba" is no longer a merge, but scores would merge it
  refused(spec, "scores");
  spec = sentencepiece();
  std::swap(spec.merges[2], spec.merges[3]);
  std::swap(spec.merges[3], spec.merges[4]);
  std::swap(spec.merges[0], spec.merges[3]);  // merges to "aba" on both sides of another piece's
  refused(spec, "scores");
  spec = sentencepiece();
  spec.byte_fallback = false;
  refused(spec, "byte_fallback");
  auto split = read_tokenizer_json(kData / "tokenizer/merged_with_next");
  ASSERT_TRUE(split.ok());
  refused(*split, "no name in GGUF");
  split = read_tokenizer_json(kData / "tokenizer/gpt2_prefix_space");
  ASSERT_TRUE(split.ok());
  refused(*split, "no name in GGUF");
}

}  // namespace
}  // namespace outrider
