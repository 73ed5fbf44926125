// SPDX-License-Identifier: Apache-2.0
// Prompts of hybrids that go on from a checkpoint of the state give the tokens and log-probabilities that
// they give when they are computed in full.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/lossless/lossless.h"

namespace outrider {
namespace {

using Tokens = std::vector<TokenId>;

constexpr int64_t kOutput = 24;

// A text of that many tokens; texts of different kinds have no beginning in common.
Tokens text_of(size_t length, size_t kind) {
  Tokens text;
  for (size_t i = 0; i < length; ++i)
    text.push_back(static_cast<TokenId>((i * i + (3 + kind) * i + 7 * kind) % 280));
  return text;
}

Tokens joined(std::span<const TokenId> first, std::span<const TokenId> second) {
  Tokens all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

class StateCacheTest : public testing::TestWithParam<const char*> {
 protected:
  std::string model() const { return std::string(OUTRIDER_SOURCE_DIR "/tests/data/models/") + GetParam(); }

  Workload workload(std::vector<Tokens> prompts, double temperature) const {
    Workload workload{
        .prompts = {}, .max_tokens = kOutput, .logprobs = 2, .ignore_eos = true, .target = model()};
    workload.sampling.temperature = temperature;
    workload.sampling.seed = 5;
    workload.token_prompts = std::move(prompts);
    return workload;
  }

  std::unique_ptr<Engine> open(const Variant& variant) const {
    auto parts = open_variant({}, variant, model());
    if (!parts.ok()) {
      ADD_FAILURE() << parts.error().message;
      return nullptr;
    }
    return Engine::assemble(std::move(*parts));
  }
};

// Runs prompts one after the other in one engine, and each in a separate engine.
class SharedEngine {
 public:
  SharedEngine(std::unique_ptr<Engine> engine, std::string what)
      : engine_(std::move(engine)), what_(std::move(what)) {}

  // Returns the completion, which equals plain decoding in full.
  Completion complete(const Workload& workload) {
    const auto plain = run_variant({}, {}, workload);
    const auto found = run_engine(*engine_, workload, what_);
    expect_same(plain, found, what_);
    return found.empty() ? Completion() : found.front();
  }

 private:
  std::unique_ptr<Engine> engine_;
  std::string what_;
};

TEST_P(StateCacheTest, TextsThatBeginAlikeGoOnFromCheckpoints) {
  for (const char* speculative : {"none", "ngram,max_draft_len=4", "draft_target,expansion=[2,2,1]"}) {
    for (const int page_size : {4, 16}) {
      const Variant variant{.speculative = speculative,
                            .page_size = page_size,
                            .batch = 2,
                            .prefill_chunk = 43,  // no multiple of a page
                            .head = model()};
      SCOPED_TRACE(describe(variant));
      SharedEngine engine(open(variant), describe(variant));
      const auto full_pages = [&](int64_t tokens) { return tokens / page_size * page_size; };
      const double temperature = page_size == 4 ? 0.8 : 0.0;
      const Tokens prompt = text_of(110, 0);
      const auto cached = [&](const Tokens& text) {
        return engine.complete(workload({text}, temperature)).cached_tokens;
      };
      const Completion first = engine.complete(workload({prompt}, temperature));
      EXPECT_EQ(first.cached_tokens, 0);
      EXPECT_EQ(cached(prompt), full_pages(109));
      // The last token of an answer has no entry.
      const Tokens answered = joined(prompt, first.tokens);
      EXPECT_EQ(cached(joined(answered, text_of(20, 1))), full_pages(std::ssize(answered) - 1));
      // A beginning that others share has a checkpoint once two texts have parted there.
      const auto beginning = std::span(prompt).first(80);
      EXPECT_EQ(cached(joined(beginning, text_of(40, 2))), 0);
      EXPECT_EQ(cached(joined(beginning, text_of(40, 3))), 80);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(StateCacheTest, BatchesWithPreemption) {
  std::vector<Tokens> prompts = {text_of(110, 0), text_of(110, 0), text_of(90, 1)};
  for (const size_t kind : {2, 3, 4}) prompts.push_back(joined(text_of(70, 0), text_of(20 * kind, kind)));
  const Workload all = workload(prompts, 0.8);
  const auto plain = run_variant({}, {.page_size = 256}, all);
  for (const int preempt_every : {3, 7}) {
    const Variant variant{.speculative = "ngram,max_draft_len=4",
                          .page_size = 4,
                          .batch = 3,
                          .prefill_chunk = 33,
                          .preempt_every = preempt_every};
    const auto engine = open(variant);
    ASSERT_NE(engine, nullptr);
    expect_same(plain, run_engine(*engine, all, describe(variant)), describe(variant));
    expect_same(plain, run_engine(*engine, all, describe(variant)), describe(variant) + " again");
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Hybrids, StateCacheTest,
                         testing::Values("lfm2", "qwen3_5", "qwen3_5_moe", "qwen3_next"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace outrider
