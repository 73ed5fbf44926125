// SPDX-License-Identifier: Apache-2.0
// An engine that goes on from what an earlier one has kept on disk gives the tokens and log-probabilities of
// plain decoding in full, and computes little of the text again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/lossless/lossless.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<TokenId>;

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "prompt_cache_test_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      if (entry.is_regular_file()) found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  fs::path path_;
};

Tokens joined(std::span<const TokenId> first, std::span<const TokenId> second) {
  Tokens all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

// Two texts with a common beginning, and another one.
std::vector<Tokens> prompts_of(size_t vocabulary) {
  const auto text = [&](size_t length, size_t kind) {
    Tokens tokens;
    for (size_t i = 0; i < length; ++i)
      tokens.push_back(static_cast<TokenId>((i * i + (3 + kind) * i + 7 * kind) % vocabulary));
    return tokens;
  };
  return {joined(text(150, 0), text(51, 1)), joined(text(150, 0), text(70, 2)), text(333, 3)};
}

Workload workload_of(const std::string& model, std::vector<Tokens> prompts, double temperature) {
  Workload workload{.prompts = {}, .max_tokens = 20, .logprobs = 1, .ignore_eos = true, .target = model};
  workload.sampling.temperature = temperature;
  workload.sampling.seed = 3;
  workload.token_prompts = std::move(prompts);
  return workload;
}

// Runs a workload in a separate engine, which ends.
std::vector<Completion> run(const Variant& variant, const Workload& workload) {
  const auto plain = run_variant({}, {}, workload);
  auto found = run_variant({}, variant, workload);
  expect_same(plain, found, describe(variant));
  return found;
}

// The prompts with their answers and a further turn.
std::vector<Tokens> next_turns(const std::vector<Tokens>& prompts, const std::vector<Completion>& answers) {
  std::vector<Tokens> turns;
  for (size_t i = 0; i < prompts.size(); ++i)
    turns.push_back(joined(joined(prompts[i], answers[i].tokens), Tokens{11, 12, 13, 14, 15}));
  return turns;
}

// Two turns of each text with a restart between them. `again`: tokens of full pages that
// may be computed again.
void expect_second_turn(const Variant& variant, const std::string& model, size_t vocabulary, int64_t again) {
  SCOPED_TRACE(describe(variant));
  const double temperature = variant.page_size == 4 ? 0.8 : 0.0;
  const std::vector<Tokens> prompts = prompts_of(vocabulary);
  const auto first = run(variant, workload_of(model, prompts, temperature));
  ASSERT_EQ(first.size(), prompts.size());
  const auto second = run(variant, workload_of(model, next_turns(prompts, first), temperature));
  for (size_t i = 0; i < second.size(); ++i) {
    const int64_t known = std::ssize(prompts[i]) + 19;  // the last token of an answer has no entry
    EXPECT_LE(second[i].cached_tokens, known);
    EXPECT_GE(second[i].cached_tokens, known / variant.page_size * variant.page_size - again) << "text " << i;
    EXPECT_EQ(second[i].speculation.drafts > 0, variant.speculative != "none") << "text " << i;
  }
}

class PromptCacheTest : public testing::TestWithParam<const char*> {};

TEST_P(PromptCacheTest, GoesOnAfterARestart) {
  for (const int page_size : {4, 16}) {
    const Folder folder;
    const std::string speculative = GetParam();
    // A head lags behind by the features that it has not read.
    const bool is_head = speculative.find("speculative_model=") != std::string::npos;
    expect_second_turn({.speculative = speculative,
                        .page_size = page_size,
                        .batch = page_size == 4 ? 1 : 3,
                        .prompt_cache = folder.path()},
                       default_target(), 4000, is_head ? 40 : 0);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Drafters, PromptCacheTest,
                         testing::Values("none", "ngram,max_draft_len=4", "draft_target,max_draft_len=3",
                                         "eagle3,speculative_model=eagle3", "mtp,speculative_model=mtp",
                                         "medusa,speculative_model=medusa", "moa,speculative_model=moa",
                                         "combine=[suffix,mtp],speculative_model=mtp"));

class PromptCacheOfFamilies : public testing::TestWithParam<const char*> {};

TEST_P(PromptCacheOfFamilies, GoesOnAfterARestart) {
  const std::string model = std::string(OUTRIDER_SOURCE_DIR "/tests/data/models/") + GetParam();
  for (const char* speculative : {"none", "ngram,max_draft_len=4"}) {
    const Folder folder;
    const Variant variant{.speculative = speculative, .page_size = 16, .prompt_cache = folder.path()};
    const std::vector<Tokens> all = prompts_of(280);
    const std::vector<Tokens> prompts = {Tokens(all[0].begin(), all[0].begin() + 110),
                                         Tokens(all[2].begin(), all[2].begin() + 130)};
    const auto first = run(variant, workload_of(model, prompts, 0.8));
    ASSERT_EQ(first.size(), prompts.size());
    const auto second = run(variant, workload_of(model, next_turns(prompts, first), 0.8));
    for (size_t i = 0; i < second.size(); ++i)
      EXPECT_GE(second[i].cached_tokens, (std::ssize(prompts[i]) - 1) / 16 * 16) << "text " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, PromptCacheOfFamilies,
                         testing::Values("lfm2", "qwen3_5", "qwen3_next", "gemma3", "llama"));

TEST(PromptCache, ComputesDamagedPagesAgain) {
  const Folder folder;
  const Variant variant{.prompt_cache = folder.path()};
  const Workload workload = workload_of(default_target(), prompts_of(4000), 0.0);
  run(variant, workload);
  const std::vector<fs::path> files = folder.files();
  ASSERT_FALSE(files.empty());
  for (const fs::path& file : files) {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(fs::file_size(file) / 2));
    bytes.put('!');
  }
  // The second text begins with pages of the first, which are computed by then.
  const auto damaged = run(variant, workload);
  for (const size_t text : {0, 2}) EXPECT_LT(damaged[text].cached_tokens, damaged[text].prompt_tokens - 64);
  const auto again = run(variant, workload);
  for (const Completion& completion : again)
    EXPECT_EQ(completion.cached_tokens, (completion.prompt_tokens - 1) / 16 * 16) << "saved again";
}

TEST(PromptCache, KeepsOtherNumbersApart) {
  const Folder folder;
  Variant variant{.prompt_cache = folder.path()};
  const Workload workload = workload_of(default_target(), {prompts_of(4000)[2]}, 0.0);
  run(variant, workload);
  Numerics rounded;
  rounded.kv_cache_type = KvCacheType::kQ8_0;
  const auto found = run_variant(rounded, variant, workload);
  expect_same(run_variant(rounded, {}, workload), found, "another type of the cache");
  EXPECT_EQ(found.front().cached_tokens, 0);
  variant.page_size = 4;
  EXPECT_EQ(run(variant, workload).front().cached_tokens, 0);
  variant.page_size = 16;
  EXPECT_EQ(run(variant, workload).front().cached_tokens, 320);
}

}  // namespace
}  // namespace outrider
