// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of prompts, on the built-in models. They are bit for bit the same as of decoding the
// prompt's tokens one by one, whether or not tokens are cached, drafted, preempted or computed beside others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/methods.h"
#include "engine/engine_parts.h"
#include "tests/lossless/lossless.h"

namespace outrider {
namespace {

using testing::IsEmpty;

constexpr int kTop = 5;

EngineOptions options_for(const std::string& drafter) {
  EngineOptions options;
  options.model = default_target();
  options.threads = 2;
  options.context = 320;
  options.page_size = 8;
  options.max_batch = 8;
  options.speculation.decoding_type = *find_method(drafter);
  options.speculation.speculative_model = default_draft();
  return options;
}

Completion completion_of(Engine& engine, const Request& request) {
  auto completion = engine.generate(request);
  EXPECT_TRUE(completion.ok()) << completion.error().message;
  return completion.ok() ? *completion : Completion();
}

// Allows only one text.
class Forced final : public TokenConstraint {
 public:
  Forced(std::vector<TokenId> text, int64_t vocabulary)
      : text_(std::move(text)), words_(static_cast<size_t>(vocabulary + 63) / 64) {}
  State start() override { return 0; }
  State advance(State state, TokenId token) override {
    return is_complete(state) || token != text_[static_cast<size_t>(state)] ? kDead : state + 1;
  }
  std::span<const uint64_t> allowed(State state) override {
    std::fill(words_.begin(), words_.end(), 0);
    if (!is_complete(state)) {
      const auto token = static_cast<size_t>(text_[static_cast<size_t>(state)]);
      words_[token / 64] |= uint64_t{1} << token % 64;
    }
    return words_;
  }
  bool is_complete(State state) override { return state >= static_cast<State>(text_.size()); }

 private:
  std::vector<TokenId> text_;
  std::vector<uint64_t> words_;
};

// A text of some pages that the model itself generates.
std::vector<TokenId> text_for(Engine& engine, uint64_t seed, int64_t tokens = 120) {
  Request request;
  request.prompt = engine.tokenize("Once upon a time, there was a");
  request.max_tokens = tokens;
  request.ignore_eos = true;
  request.sampling.temperature = 1.0;
  request.sampling.seed = seed;
  std::vector<TokenId> text = request.prompt;
  const Completion completion = completion_of(engine, request);
  text.insert(text.end(), completion.tokens.begin(), completion.tokens.end());
  return text;
}

// Decodes the text one token per step, without speculation.
std::vector<TokenLogprobs> decoded(Engine& engine, const std::vector<TokenId>& text) {
  Request request;
  request.prompt = {text.front()};
  request.max_tokens = static_cast<int64_t>(text.size());
  request.ignore_eos = true;
  request.logprobs = kTop;
  request.speculation.enabled = false;
  request.constraint =
      std::make_shared<Forced>(std::vector<TokenId>(text.begin() + 1, text.end()), engine.info().vocab_size);
  const Completion completion = completion_of(engine, request);
  EXPECT_EQ(completion.tokens, std::vector<TokenId>(text.begin() + 1, text.end()));
  return completion.logprobs;
}

Request scoring(const std::vector<TokenId>& text, int64_t max_tokens = 0) {
  Request request;
  request.prompt = text;
  request.max_tokens = max_tokens;
  request.prompt_logprobs = kTop;
  return request;
}

void expect_same(const std::vector<TokenLogprobs>& found, const std::vector<TokenLogprobs>& expected,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].logprob, expected[i].logprob) << what << ", token " << i + 1;
    ASSERT_EQ(found[i].top, expected[i].top) << what << ", token " << i + 1;
    const auto place = std::find_if(found[i].top.begin(), found[i].top.end(),
                                    [&](const auto& one) { return one.second == found[i].logprob; });
    if (place == found[i].top.end()) {
      ASSERT_GT(found[i].rank, kTop) << what;
    } else {
      ASSERT_GE(found[i].rank, place - found[i].top.begin() + 1) << what;
    }
  }
}

class PromptLogprobs : public testing::TestWithParam<const char*> {};

TEST_P(PromptLogprobs, AreThoseOfDecodingTheTextWhateverTheChunk) {
  const std::string drafter = GetParam();
  for (const int chunk : {1, 5, 48, 256}) {
    EngineOptions options = options_for(drafter);
    options.prefill_chunk = chunk;
    const auto engine = open_engine(options);
    const std::vector<TokenId> text = text_for(*engine, 1);
    const Completion scored = completion_of(*engine, scoring(text));
    expect_same(scored.prompt_logprobs, decoded(*engine, text), drafter + " " + std::to_string(chunk));
    EXPECT_THAT(scored.tokens, IsEmpty());
    EXPECT_EQ(scored.finish_reason, FinishReason::kLength);
    EXPECT_EQ(engine->free_pages(), engine->parts().cache->shape().page_count);
  }
}

TEST_P(PromptLogprobs, AreTheSameWithACachedBeginningAndChangeNothingBehindThem) {
  const auto engine = open_engine(options_for(GetParam()));
  const std::vector<TokenId> text = text_for(*engine, 2);
  Request request = scoring(text, 20);
  request.prompt_logprobs = -1;
  request.logprobs = kTop;
  const Completion without = completion_of(*engine, request);
  EXPECT_GT(completion_of(*engine, request).cached_tokens, 0);
  request.prompt_logprobs = kTop;
  const Completion with = completion_of(*engine, request);
  EXPECT_EQ(with.cached_tokens, 0);  // cached tokens have no logits
  EXPECT_EQ(with.tokens, without.tokens);
  EXPECT_THAT(without.prompt_logprobs, IsEmpty());
  std::vector<TokenId> whole = text;
  whole.insert(whole.end(), with.tokens.begin(), with.tokens.end());
  std::vector<TokenLogprobs> all = with.prompt_logprobs;
  all.insert(all.end(), with.logprobs.begin(), with.logprobs.end());
  for (TokenLogprobs& one : all) one.rank = one.rank == 0 ? kTop + 1 : one.rank;
  const Completion scored = completion_of(*engine, scoring(whole));
  ASSERT_EQ(scored.prompt_logprobs.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(scored.prompt_logprobs[i].logprob, all[i].logprob) << i;
    EXPECT_EQ(scored.prompt_logprobs[i].top, all[i].top) << i;
  }
}

// Requests run side by side and lose their pages in every step, some of them in the midst of their prompts.
TEST_P(PromptLogprobs, SurvivePreemptionAndCompany) {
  EngineOptions options = options_for(GetParam());
  options.prefill_chunk = 24;
  options.kv_pages = 60;
  const auto engine = open_engine(options, /*preempt_every=*/1);
  const auto plain = open_engine(options_for("None"));
  std::vector<std::vector<TokenId>> texts;
  std::vector<Completion> served(8);
  std::vector<std::vector<TokenLogprobs>> streamed(8);
  for (size_t i = 0; i < served.size(); ++i) {
    texts.push_back(text_for(*plain, 3 + i % 5, 60 + 10 * static_cast<int64_t>(i)));
    Request request = scoring(texts[i], i % 3 == 0 ? 0 : 12);
    if (i % 4 == 3) request.prompt_logprobs = -1;
    const auto id = engine->submit(request, [&, i](RequestId, const Progress& progress) {
      streamed[i].insert(streamed[i].end(), progress.prompt_logprobs.begin(), progress.prompt_logprobs.end());
      if (progress.completion != nullptr) served[i] = *progress.completion;
    });
    ASSERT_TRUE(id.ok()) << id.error().message;
  }
  while (engine->step()) ASSERT_TRUE(engine->parts().cache->check_invariants().ok());
  EXPECT_GT(engine->status().preemptions, 8);
  for (size_t i = 0; i < served.size(); ++i) {
    const auto expected = i % 4 == 3 ? std::vector<TokenLogprobs>() : decoded(*plain, texts[i]);
    expect_same(served[i].prompt_logprobs, expected, std::to_string(i));
    expect_same(streamed[i], expected, "streamed " + std::to_string(i));
    Request request = scoring(texts[i], i % 3 == 0 ? 0 : 12);
    EXPECT_EQ(served[i].tokens, completion_of(*plain, request).tokens) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Drafters, PromptLogprobs, testing::Values("None", "DraftTarget", "EarlyExit"),
                         [](const auto& info) { return std::string(info.param); });

TEST(PromptLogprobsLimits, AStepComputesAFewRowsOfTheHeadAlone) {
  EngineOptions options = options_for("None");
  options.prefill_chunk = 256;
  const auto engine = open_engine(options);
  const std::vector<TokenId> text = text_for(*engine, 4, 200);
  const int64_t before = engine->status().steps;
  completion_of(*engine, scoring(text));
  const auto rows = static_cast<int64_t>(text.size()) - 1;
  EXPECT_EQ(engine->status().steps - before, (rows + kMaxPromptLogits) / (kMaxPromptLogits + 1));
}

TEST(PromptLogprobsLimits, EndsOfAllKinds) {
  const auto engine = open_engine(options_for("None"));
  const std::vector<TokenId> text = text_for(*engine, 5, 20);
  const Completion one = completion_of(*engine, scoring({text[0]}));
  EXPECT_THAT(one.prompt_logprobs, IsEmpty());
  EXPECT_EQ(one.finish_reason, FinishReason::kLength);

  // A constraint that allows no token does not change the prompt's log-probabilities.
  Request request = scoring(text, 8);
  request.constraint = std::make_shared<Forced>(std::vector<TokenId>(), engine->info().vocab_size);
  const Completion complete = completion_of(*engine, request);
  EXPECT_EQ(complete.finish_reason, FinishReason::kStop);
  EXPECT_THAT(complete.tokens, IsEmpty());
  expect_same(complete.prompt_logprobs, decoded(*engine, text), "complete");

  request = scoring(text);
  request.prompt_logprobs = 21;
  const auto refused = engine->submit(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "prompt logprobs must be 0 to 20, or -1 for none, found 21");
}

}  // namespace
}  // namespace outrider
