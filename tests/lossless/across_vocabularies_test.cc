// SPDX-License-Identifier: Apache-2.0
// Draft models with other tokenizers than the target's: vocabularies of published models under small models
// that repeat a row of words. Output equals plain decoding, drafts are accepted, and texts equal the texts of
// a slow reference.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_tokenizer.h"
#include "formats/gguf/gguf_writer.h"
#include "platform/mapped_file.h"
#include "tests/lossless/lossless.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr EncodeOptions kPlain = {.add_special = false, .parse_special = false};

fs::path vocabulary_file(const std::string& name) {
  return fs::path(OUTRIDER_SOURCE_DIR) / ".." / "shared" / "data" / "tokenizer" /
         ("ggml-vocab-" + name + ".gguf");
}

// The target's vocabulary and the draft's.
struct Pair {
  const char *target, *draft;
};
constexpr Pair kPairs[] = {
    {"gpt-2", "llama-spm"}, {"llama-spm", "starcoder"}, {"deepseek-coder", "phi-3"}, {"refact", "gpt-neox"}};

// Every one of them is a token of every vocabulary.
constexpr std::array kWords = {" the",  " of",  " and", " to", " in",   " is",
                               " that", " for", " it",  " on", " with", " as"};

uint64_t hash_of(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash ^ hash >> 29;
}

// The word that a token leads on from: its own, if it is a word.
size_t word_of(std::string_view bytes) {
  for (size_t i = 0; i < kWords.size(); ++i)
    if (bytes == kWords[i]) return i;
  return hash_of(bytes) % kWords.size();
}

// A model of one layer that writes kWords in turn, and now and then something else.
class WordModel {
 public:
  WordModel(const std::string& vocabulary, const fs::path& path) {
    const auto mapped = MappedFile::open(vocabulary_file(vocabulary));
    const auto file = parse_gguf(mapped->bytes(), vocabulary);
    for (const auto& [key, value] : file->metadata)
      if (key.starts_with("tokenizer.")) metadata_.copy(key, value);
    tokenizer_ = *Tokenizer::create(*read_gguf_tokenizer(vocabulary_file(vocabulary)));
    describe();
    add_ends();
    add_layer();
    write(path);
  }

 private:
  static constexpr int64_t kHidden = 64, kKv = 32, kMlp = 64;

  void describe() {
    metadata_.set_string("general.architecture", "llama");
    metadata_.set_u32("llama.context_length", 512);
    metadata_.set_u32("llama.embedding_length", kHidden);
    metadata_.set_u32("llama.block_count", 1);
    metadata_.set_u32("llama.feed_forward_length", kMlp);
    metadata_.set_u32("llama.attention.head_count", 4);
    metadata_.set_u32("llama.attention.head_count_kv", 2);
    metadata_.set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5);
    metadata_.set_f32("llama.rope.freq_base", 10000.0);
    metadata_.set_u32("llama.vocab_size", tokenizer_->vocab_size());
  }

  // A token's embedding is the axis of its word; a word's row of the output head is the axis of the one
  // before.
  void add_ends() {
    constexpr float kSure = 1.6f, kNoise = 0.3f;
    const int64_t vocab = tokenizer_->vocab_size();
    std::vector<float>& embeddings = add("token_embd.weight", {vocab, kHidden}, 0.01f);
    std::vector<float>& head = add("output.weight", {vocab, kHidden}, kNoise);
    for (TokenId token = 0; token < vocab; ++token) {
      const std::string_view bytes = tokenizer_->token_bytes(token);
      const size_t word = word_of(bytes), row = static_cast<size_t>(token * kHidden);
      embeddings[row + word] += 1.0f;
      if (bytes == kWords[word]) head[row + (word + kWords.size() - 1) % kWords.size()] = kSure;
    }
  }

  void add_layer() {
    add("blk.0.attn_q.weight", {kHidden, kHidden}, 0.2f);
    add("blk.0.attn_k.weight", {kKv, kHidden}, 0.2f);
    add("blk.0.attn_v.weight", {kKv, kHidden}, 0.02f);
    add("blk.0.attn_output.weight", {kHidden, kHidden}, 0.2f);
    add("blk.0.ffn_gate.weight", {kMlp, kHidden}, 0.2f);
    add("blk.0.ffn_up.weight", {kMlp, kHidden}, 0.02f);
    add("blk.0.ffn_down.weight", {kHidden, kMlp}, 0.02f);
    for (const char* norm : {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"})
      for (float& value : add(norm, {kHidden}, 0.0f)) value = 1.0f;
  }

  // Numbers up to `size` that depend only on the name and the place.
  std::vector<float>& add(const std::string& name, const Shape& shape, float size) {
    infos_.push_back({.name = name, .dtype = DType::kF32, .shape = shape});
    std::vector<float>& values = values_[name];
    values.resize(static_cast<size_t>(infos_.back().bytes()) / sizeof(float));
    uint64_t state = hash_of(name);
    for (float& value : values) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      value = size * (static_cast<float>(state >> 40) / 8388608.0f - 1.0f);
    }
    return values;
  }

  void write(const fs::path& path) const {
    std::ofstream file(path, std::ios::binary);
    file << gguf_header(metadata_, infos_);
    for (const GgufTensorInfo& info : infos_) {
      const std::vector<float>& values = values_.at(info.name);
      file.write(reinterpret_cast<const char*>(values.data()), info.bytes());
      file << std::string(static_cast<size_t>(gguf_padding(info.bytes())), '\0');
    }
  }

  GgufMetadataWriter metadata_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<GgufTensorInfo> infos_;
  std::map<std::string, std::vector<float>> values_;  // by name
};

class AcrossVocabularies : public testing::TestWithParam<Pair> {
 protected:
  void SetUp() override {
    for (const char* name : {GetParam().target, GetParam().draft})
      if (!fs::exists(vocabulary_file(name))) GTEST_SKIP() << "no " << vocabulary_file(name);
    fs::create_directories(directory_);
    WordModel(GetParam().target, target());
    WordModel(GetParam().draft, draft());
  }
  void TearDown() override { fs::remove_all(directory_); }

  fs::path target() const { return directory_ / "target.gguf"; }
  fs::path draft() const { return directory_ / "draft.gguf"; }
  Workload workload(double temperature) const {
    Workload all{.prompts = mixed_prompts(5), .max_tokens = 24, .ignore_eos = true, .target = target()};
    all.sampling.temperature = temperature;
    all.sampling.seed = 3;
    return all;
  }

  fs::path directory_ = fs::temp_directory_path() / ("outrider_across_" + std::to_string(getpid()));
  const Numerics numerics_{.kernels = ""};
};

constexpr const char* kMatches[] = {"strings", "tokens", "auto"};
constexpr const char* kShapes[] = {"max_draft_len=5", "expansion=[2,2,1]",
                                   "max_draft_len=4,dynamic_tree_max_topK=3,max_total_draft_tokens=12",
                                   "max_draft_len=6,policy=auto"};

// Each way to match with `count` shapes, from another one on; each under another page size, batch and chunk.
std::vector<Variant> variants(const fs::path& draft, AcceptanceRule rule, size_t count) {
  std::vector<Variant> all;
  size_t turn = static_cast<size_t>(rule);
  for (const char* match : kMatches) {
    for (size_t i = 0; i < count; ++i) {
      Variant& one = all.emplace_back();
      ++turn;
      one.speculative =
          std::string("draft_target,vocabulary_match=") + match + "," + kShapes[turn % std::size(kShapes)];
      one.head = draft;
      one.acceptance = rule;
      one.page_size = turn % 3 == 0 ? 1 : 16;
      one.batch = turn % 2 == 0 ? 5 : 1;
      one.prefill_chunk = turn % 4 == 0 ? 7 : 256;
      one.preempt_every = turn % 5 == 0 ? 5 : 0;
    }
  }
  return all;
}

TEST_P(AcrossVocabularies, OutputIsIdentical) {
  for (const double temperature : {0.0, 1.0}) {
    const Workload work = workload(temperature);
    const auto plain = run_variant(numerics_, {}, work);
    for (const AcceptanceRule rule :
         {AcceptanceRule::kCoupled, AcceptanceRule::kRejection, AcceptanceRule::kBlock}) {
      if (temperature > 0.0 && rule != AcceptanceRule::kCoupled) continue;
      for (const Variant& variant : variants(draft(), rule, rule == AcceptanceRule::kCoupled ? 2 : 1)) {
        expect_same(plain, run_variant(numerics_, variant, work), describe(variant));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(AcrossVocabularies, PenaltiesAndConstraintsChangeNothing) {
  Workload work = workload(0.8);
  work.sampling.repetition_penalty = 1.2;
  work.language = ToyLanguage::kEven;
  work.has_rules = true;
  const auto plain = run_variant(numerics_, {}, work);
  for (const Variant& variant : variants(draft(), AcceptanceRule::kCoupled, 1)) {
    expect_same(plain, run_variant(numerics_, variant, work), describe(variant));
    if (HasFatalFailure()) return;
  }
}

TEST_P(AcrossVocabularies, DraftsAreAccepted) {
  for (const double temperature : {0.0, 1.0}) {
    for (const char* match : kMatches) {
      const std::string speculative = std::string("draft_target,max_draft_len=5,vocabulary_match=") + match;
      int64_t drafted = 0, accepted = 0;
      for (const Completion& completion :
           run_variant(numerics_, {.speculative = speculative, .head = draft()}, workload(temperature))) {
        drafted += completion.speculation.drafted;
        accepted += completion.speculation.accepted;
      }
      EXPECT_GT(accepted, drafted / (temperature == 0.0 ? 2 : 10)) << match << " at " << temperature;
      EXPECT_GT(drafted, 20) << match;
    }
  }
}

std::string text_of(const Tokenizer& tokenizer, std::span<const TokenId> tokens) {
  std::string text;
  for (const TokenId token : tokens) text += tokenizer.token_bytes(token);
  return text;
}

// The tokens of the whole text that begin after `bytes` bytes, if one begins there.
std::optional<std::vector<TokenId>> tokens_after(const Tokenizer& tokenizer, const std::string& text,
                                                 size_t bytes) {
  const std::vector<TokenId> all = tokenizer.encode(text, kPlain);
  size_t position = text.size() - text_of(tokenizer, all).size();  // a space before the text is no part of it
  for (size_t i = 0; i < all.size(); ++i) {
    if (position == bytes) return std::vector(all.begin() + static_cast<ptrdiff_t>(i), all.end());
    position += tokenizer.token_bytes(all[i]).size();
  }
  return std::nullopt;
}

// The text that the draft model writes greedily after `text`, computed from its beginning by an engine.
std::string slow_draft(Engine& engine, const Tokenizer& tokenizer, const std::string& text, int tokens) {
  Request request;
  if (tokenizer.adds_bos() && tokenizer.bos()) request.prompt.push_back(*tokenizer.bos());
  for (const TokenId token : tokenizer.encode(text, kPlain)) request.prompt.push_back(token);
  request.max_tokens = tokens;
  request.ignore_eos = true;
  std::string drafted;
  const auto id = engine.submit(request, [&](RequestId, const Progress& progress) {
    if (progress.completion != nullptr) drafted = text_of(tokenizer, progress.completion->tokens);
  });
  EXPECT_TRUE(id.ok());
  while (engine.step()) {
  }
  return drafted;
}

// The chain that a drafter proposes after the tokens, all of it chosen without chance.
std::vector<TokenId> chain_after(Drafter& drafter, std::span<const TokenId> tokens, int depth) {
  SamplingParams sampling;
  sampling.temperature = 1.0;
  const DraftRequest request{.sequence = 1,
                             .tokens = tokens,
                             .prompt_length = 1,
                             .max_draft_len = depth,
                             .max_nodes = depth,
                             .sampling = &sampling,
                             .acceptance = AcceptanceRule::kRejection};
  TokenTree tree(tokens.back());
  EXPECT_TRUE(drafter.draft({&request, 1}, {&tree, 1}).ok());
  for (const Proposal& proposal : tree.proposals()) EXPECT_EQ(proposal.distribution, -1);
  return {tree.tokens().begin() + 1, tree.tokens().end()};
}

// Texts grow word by word, with a draft after each, so that all but the first use what is cached.
TEST_P(AcrossVocabularies, DraftedTextIsThatOfASlowReference) {
  constexpr int kDepth = 6;
  const auto parts = open_variant(
      numerics_, {.speculative = "draft_target,vocabulary_match=strings,max_draft_len=6", .head = draft()},
      target());
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  auto draft_parts = open_variant(numerics_, {}, draft());
  ASSERT_TRUE(draft_parts.ok()) << draft_parts.error().message;
  const std::shared_ptr<const Tokenizer> own = (*draft_parts)->tokenizer;
  const auto engine = Engine::assemble(std::move(*draft_parts));
  const Tokenizer& tokenizer = *(*parts)->tokenizer;
  Drafter& drafter = *(*parts)->drafter;
  std::string text = "Walking in";
  int compared = 0;
  for (const char* next : {" the", " garden", ",", " it is", " for Königsberg", " and", "\nThen", " that"}) {
    text += next;
    const std::vector<TokenId> tokens = tokenizer.encode(text, kPlain);
    const std::string drafted = slow_draft(*engine, *own, text, kDepth);
    const std::vector<TokenId> found = chain_after(drafter, tokens, kDepth);
    auto expected = tokens_after(tokenizer, text + drafted, text.size());
    if (!expected) continue;
    if (expected->size() > kDepth) expected->resize(kDepth);
    ++compared;
    EXPECT_EQ(found, *expected) << text << "|" << drafted;
  }
  EXPECT_GT(compared, 4);
  drafter.end(1);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, AcrossVocabularies, testing::ValuesIn(kPairs), [](const auto& info) {
  std::string name = std::string(info.param.target) + "_with_" + info.param.draft;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

}  // namespace
}  // namespace outrider
