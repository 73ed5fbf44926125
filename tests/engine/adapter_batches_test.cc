// SPDX-License-Identifier: Apache-2.0
// Requests with different adapters in one batch: each has the text and the log-probabilities that it has
// by itself and without drafts, whatever drafts for it, however its pages lie and come back.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "tests/lossless/lossless.h"
#include "tests/support/adapter_folder.h"

namespace outrider::adapter_batches_test {
namespace {

namespace fs = std::filesystem;

constexpr int kAdapters = 8;
constexpr int kRequests = 32;

std::string adapter_name(int index) { return "a" + std::to_string(index); }

fs::path adapter_folder(const ModelConfig& config, int index) {
  const fs::path folder = fs::path(testing::TempDir()) / ("adapter_" + adapter_name(index));
  // Their updates are large enough to change every text.
  write_adapter(folder, config, static_cast<uint32_t>(index),
                {.rank = 1 + 3 * index, .alpha = 16.0, .size = 0.15});
  return folder;
}

// An engine of the variant with all adapters; null: the test has failed.
std::unique_ptr<Engine> engine_with_adapters(const Variant& variant) {
  auto parts = open_variant({}, variant, default_target());
  if (!parts.ok()) {
    ADD_FAILURE() << describe(variant) << ": " << parts.error().message;
    return nullptr;
  }
  const ModelConfig config = (*parts)->target->config();
  auto engine = Engine::assemble(std::move(*parts));
  for (int i = 0; i < kAdapters; ++i) {
    const Status loaded = engine->load_adapter({.name = adapter_name(i), .path = adapter_folder(config, i)});
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
  }
  return engine;
}

// Most requests have one adapter, some none, two or one with another scale. Neighbours often have the same
// prompt.
Request request_of(const Engine& engine, int index, double temperature) {
  static const std::vector<std::string> prompts = mixed_prompts(kRequests / 3 + 1);
  Request request;
  request.prompt = engine.tokenize(prompts[static_cast<size_t>(index / 3)]);
  request.max_tokens = 24;
  request.sampling.temperature = temperature;
  request.sampling.seed = static_cast<uint64_t>(index);
  request.logprobs = 2;
  request.adapters.emplace();
  if (index % 9 != 8) request.adapters->push_back({.name = adapter_name(index % kAdapters)});
  if (index % 7 == 6)
    request.adapters->push_back({.name = adapter_name((index + 3) % kAdapters), .scale = -0.5});
  return request;
}

std::vector<Completion> run_together(Engine& engine, double temperature, const std::string& what) {
  std::vector<Completion> completions(kRequests);
  for (int i = 0; i < kRequests; ++i) {
    const auto id = engine.submit(request_of(engine, i, temperature),
                                  [&completions, i, &what](RequestId, const Progress& progress) {
                                    if (progress.completion == nullptr) return;
                                    EXPECT_EQ(progress.completion->speculation.draft_failures, 0) << what;
                                    completions[static_cast<size_t>(i)] = *progress.completion;
                                  });
    EXPECT_TRUE(id.ok()) << id.error().message;
  }
  while (engine.step()) {
  }
  return completions;
}

// Each request in an engine that has seen no other.
const std::vector<Completion>& run_alone(double temperature) {
  static std::map<double, std::vector<Completion>> known;
  std::vector<Completion>& completions = known[temperature];
  if (!completions.empty()) return completions;
  const auto engine = engine_with_adapters({.batch = 1});
  for (int i = 0; engine != nullptr && i < kRequests; ++i) {
    Request request = request_of(*engine, i, temperature);
    request.cache_scope = static_cast<uint64_t>(i) + 1;
    const auto completion = engine->generate(std::move(request));
    EXPECT_TRUE(completion.ok()) << completion.error().message;
    if (completion.ok()) completions.push_back(*completion);
  }
  return completions;
}

TEST(AdapterBatches, AdaptersChangeTheTexts) {
  const std::vector<Completion>& texts = run_alone(0);
  ASSERT_EQ(texts.size(), size_t{kRequests});
  int different = 0;
  for (size_t i = 0; i + 1 < kRequests; ++i) {
    if (i / 3 == (i + 1) / 3) different += texts[i].tokens != texts[i + 1].tokens ? 1 : 0;
  }
  EXPECT_GT(different, kRequests / 2) << "requests with one prompt and several adapters";
}

TEST(AdapterBatches, EveryRequestHasTheTextThatItHasAlone) {
  std::vector<Variant> variants;
  for (const char* drafter :
       {"none", "ngram,max_draft_len=4", "suffix,max_draft_len=6", "lookahead,max_draft_len=4",
        "draft_target,expansion=[3,2,1]", "early_exit,exit_layer=2,expansion=[2,2]",
        "early_exit,skip_attention_layers=[1,3],skip_mlp_layers=[4],max_draft_len=3",
        "eagle3,speculative_model=eagle3,max_draft_len=6,dynamic_tree_max_topK=3,max_total_draft_tokens=24",
        "mtp,speculative_model=mtp,max_draft_len=4", "moa,speculative_model=moa,max_draft_len=4", "auto",
        "combine=[suffix,draft_target,lookahead],max_draft_len=4"})
    variants.push_back({.speculative = drafter, .batch = kRequests});
  variants.push_back(
      {.speculative = "draft_target,expansion=[2,2]", .page_size = 1, .batch = 8, .prefill_chunk = 7});
  variants.push_back(
      {.speculative = "suffix,max_draft_len=4", .page_size = 5, .batch = 5, .preempt_every = 3});
  variants.push_back({.speculative = "none", .page_size = 16, .batch = 16, .preempt_every = 2, .threads = 1});
  double temperature = 0;
  for (const Variant& variant : variants) {
    const auto engine = engine_with_adapters(variant);
    ASSERT_NE(engine, nullptr);
    expect_same(run_alone(temperature), run_together(*engine, temperature, describe(variant)),
                describe(variant));
    temperature = 0.9 - temperature;
  }
}

// An adapter that leaves while requests use it stays until they end; a prompt of another adapter is never
// found.
TEST(AdapterBatches, AdaptersComeAndGoBetweenSteps) {
  const auto engine =
      engine_with_adapters({.speculative = "ngram,max_draft_len=4", .page_size = 2, .batch = 8});
  ASSERT_NE(engine, nullptr);
  const std::vector<Completion>& alone = run_alone(0);
  Completion first;
  ASSERT_TRUE(engine
                  ->submit(request_of(*engine, 2, 0),
                           [&](RequestId, const Progress& progress) {
                             if (progress.completion != nullptr) first = *progress.completion;
                           })
                  .ok());
  for (int i = 0; i < 5; ++i) engine->step();
  ASSERT_TRUE(engine->unload_adapter(adapter_name(2)).ok());
  EXPECT_FALSE(engine->unload_adapter(adapter_name(2)).ok());
  const auto refused = engine->submit(request_of(*engine, 10, 0));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("no adapter 'a2'; loaded are a0, a1, a3"), std::string::npos)
      << refused.error().message;
  // The numbers of another adapter come to a free place while the first is still in use.
  ASSERT_TRUE(
      engine->load_adapter({.name = "other", .path = fs::path(testing::TempDir()) / "adapter_a5"}).ok());
  while (engine->step()) {
  }
  EXPECT_EQ(first.tokens, alone[2].tokens);
  Request request = request_of(*engine, 5, 0);
  const auto of_a5 = engine->generate(request);
  request.adapters = {{{.name = "other"}}};
  const auto of_other = engine->generate(request);
  ASSERT_TRUE(of_a5.ok() && of_other.ok());
  EXPECT_EQ(of_other->tokens, of_a5->tokens);
  EXPECT_GT(of_other->cached_tokens, 0) << "equal numbers, equal entries";
  request.adapters->clear();
  EXPECT_EQ(engine->generate(request)->cached_tokens, 0) << "entries of an adapter are of no use without it";
}

// Numbers decide what a kept prompt is worth, not the names of adapters or the order in which they were
// loaded.
TEST(AdapterBatches, KeptPromptsBelongToTheirAdapter) {
  const fs::path folder = fs::path(testing::TempDir()) / "adapter_prompts";
  fs::remove_all(folder);
  const Variant variant{
      .speculative = "suffix,max_draft_len=4", .page_size = 4, .batch = 2, .prompt_cache = folder};
  Request request;
  Completion first;
  {
    const auto engine = engine_with_adapters(variant);
    ASSERT_NE(engine, nullptr);
    request = request_of(*engine, 3, 0);
    for (TokenId token = 5; token < 60; ++token) request.prompt.push_back(token);
    first = *engine->generate(request);
  }
  const auto engine = engine_with_adapters(variant);
  ASSERT_NE(engine, nullptr);
  ASSERT_TRUE(engine->unload_adapter("a0").ok());
  ASSERT_TRUE(
      engine->load_adapter({.name = "again", .path = fs::path(testing::TempDir()) / "adapter_a3"}).ok());
  Request other = request;
  other.adapters = {{{.name = "a4"}}};
  EXPECT_EQ(engine->generate(other)->cached_tokens, 0);
  other.adapters = {{{.name = "a3", .scale = 0.5}}};
  EXPECT_EQ(engine->generate(other)->cached_tokens, 0);
  other.adapters->clear();
  EXPECT_EQ(engine->generate(other)->cached_tokens, 0);
  other.adapters = {{{.name = "again"}}};
  const Completion again = *engine->generate(other);
  EXPECT_GT(again.cached_tokens, 50);
  EXPECT_EQ(again.tokens, first.tokens);
}

TEST(AdapterBatches, DefaultsAreOfRequestsThatChooseNone) {
  const auto engine = engine_with_adapters({.batch = 4});
  ASSERT_NE(engine, nullptr);
  Request request = request_of(*engine, 0, 0);
  const auto chosen = engine->generate(request);
  request.adapters->clear();
  const auto none = engine->generate(request);
  request.adapters.reset();
  EXPECT_EQ(engine->generate(request)->tokens, none->tokens);
  ASSERT_TRUE(engine->set_default_adapter("a0", 1, true).ok());
  EXPECT_EQ(engine->generate(request)->tokens, chosen->tokens);
  ASSERT_TRUE(engine->set_default_adapter("a0", 0, true).ok());
  EXPECT_EQ(engine->generate(request)->tokens, none->tokens);
  EXPECT_NE(none->tokens, chosen->tokens);
  const std::vector<double> scores = *engine->score(request.prompt);
  ASSERT_TRUE(engine->set_default_adapter("a0", 1, true).ok());
  EXPECT_NE(*engine->score(request.prompt), scores);
}

}  // namespace
}  // namespace outrider::adapter_batches_test
