// SPDX-License-Identifier: Apache-2.0
// Functions of the user that change logits: the text equals plain decoding with the same function.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/lossless/lossless.h"

namespace outrider {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Forbids tokens and favours others, by the last two tokens and the length of the text.
Status shift(std::span<const TokenId> tokens, std::span<float> logits) {
  const size_t before = tokens.size() < 2 ? 0 : static_cast<size_t>(tokens[tokens.size() - 2]);
  const size_t key = static_cast<size_t>(tokens.back()) * 31 + before * 17 + tokens.size();
  for (size_t i = key % 5; i < logits.size(); i += 5) logits[i] = kNever;
  logits[key % logits.size()] += 2;
  return {};
}

// An engine without drafts, or with a chain of a copy of the target.
std::unique_ptr<Engine> small_engine(const std::string& speculative) {
  auto parts = open_variant({}, {.speculative = speculative}, default_target());
  EXPECT_TRUE(parts.ok()) << parts.error().message;
  return Engine::assemble(std::move(parts).value());
}

Completion complete(Engine& engine, const LogitsFunction& function, double temperature) {
  Request request{.prompt = engine.tokenize(mixed_prompts(1)[0]), .max_tokens = 24, .ignore_eos = true};
  request.sampling.temperature = temperature;
  request.logits_function = function;
  auto done = engine.generate(request);
  EXPECT_TRUE(done.ok()) << done.error().message;
  return std::move(done).value();
}

const std::string kDrafting[] = {"none", "ngram,max_draft_len=4,policy=fixed",
                                 "draft_target,max_draft_len=4,policy=fixed"};

TEST(LogitsFunction, EveryDrafterKeepsTheText) {
  for (const double temperature : {0.0, 0.8}) {
    Workload workload{.prompts = mixed_prompts(3), .max_tokens = 32, .logprobs = 1, .ignore_eos = true};
    workload.sampling.temperature = temperature;
    workload.sampling.seed = 3;
    const std::vector<Completion> unchanged = run_variant({}, {}, workload);
    workload.logits_function = shift;
    const std::vector<Completion> plain = run_variant({}, {}, workload);
    ASSERT_EQ(plain.size(), 3U);
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_NE(plain[i].tokens, unchanged[i].tokens);
    size_t turn = 0;
    for (const std::string& drafter : drafters()) {
      const Variant variant{.speculative = drafter + "," + shapes()[turn % shapes().size()],
                            .page_size = turn % 2 == 0 ? 16 : 3,
                            .batch = turn % 3 == 0 ? 1 : 3,
                            .prefill_chunk = turn % 2 == 0 ? 256 : 7,
                            .preempt_every = turn % 5 == 4 ? 5 : 0};
      expect_same(plain, run_variant({}, variant, workload), describe(variant));
      ++turn;
    }
  }
}

TEST(LogitsFunction, GetsAllTokensBeforeTheNextOne) {
  for (const std::string& drafting : kDrafting) {
    const auto engine = small_engine(drafting);
    std::vector<std::vector<TokenId>> texts;
    const auto note = [&](std::span<const TokenId> tokens, std::span<float>) {
      texts.emplace_back(tokens.begin(), tokens.end());
      return Status();
    };
    const Completion done = complete(*engine, note, 0);
    std::vector<TokenId> text = engine->tokenize(mixed_prompts(1)[0]);
    for (const TokenId token : done.tokens) {
      EXPECT_NE(std::ranges::find(texts, text), texts.end()) << drafting;
      text.push_back(token);
    }
    for (const std::vector<TokenId>& one : texts)  // nothing but what the text became
      EXPECT_TRUE(std::ranges::equal(one, std::span(text).first(std::min(one.size(), text.size()))))
          << drafting;
  }
}

TEST(LogitsFunction, DecidesByItself) {
  const auto only = [](std::span<const TokenId> tokens, std::span<float> logits) {
    const float kept = 1;
    std::ranges::fill(logits, kNever);
    logits[tokens.size() % 7 + 20] = kept;
    return Status();
  };
  for (const std::string& drafting : kDrafting) {
    const auto engine = small_engine(drafting);
    const size_t begin = engine->tokenize(mixed_prompts(1)[0]).size();
    const Completion done = complete(*engine, only, 0.7);
    ASSERT_EQ(done.tokens.size(), 24U);
    for (size_t i = 0; i < done.tokens.size(); ++i)
      EXPECT_EQ(done.tokens[i], static_cast<TokenId>((begin + i) % 7 + 20)) << drafting;
  }
}

TEST(LogitsFunction, AFailureEndsTheRequestAfterThePlainTokens) {
  for (const double temperature : {0.0, 0.8}) {
    const std::vector<TokenId> whole = complete(*small_engine("none"), {}, temperature).tokens;
    for (const std::string& drafting : kDrafting) {
      const auto engine = small_engine(drafting);
      const size_t begin = engine->tokenize(mixed_prompts(1)[0]).size();
      for (const size_t count : {size_t{0}, size_t{1}, size_t{9}}) {
        const auto fail = [&](std::span<const TokenId> tokens, std::span<float>) {
          return tokens.size() < begin + count ? Status() : Status(input_error("no more"));
        };
        const Completion failed = complete(*engine, fail, temperature);
        EXPECT_EQ(failed.finish_reason, FinishReason::kError) << drafting;
        EXPECT_TRUE(std::ranges::equal(failed.tokens, std::span(whole).first(count))) << drafting << count;
        const auto raise = [&](std::span<const TokenId> tokens, std::span<float> logits) {
          return fail(tokens, logits).ok() ? Status() : throw std::runtime_error("no more");
        };
        EXPECT_EQ(complete(*engine, raise, temperature).tokens, failed.tokens) << drafting;
      }
      EXPECT_EQ(complete(*engine, {}, temperature).tokens, whole) << drafting;  // the engine goes on
    }
  }
}

TEST(LogitsFunction, NoTokenIsLeft) {
  const auto none = [](std::span<const TokenId>, std::span<float> logits) {
    std::ranges::fill(logits, kNever);
    return Status();
  };
  for (const std::string& drafting : kDrafting) {
    const Completion done = complete(*small_engine(drafting), none, 0.5);
    EXPECT_EQ(done.finish_reason, FinishReason::kStop);
    EXPECT_TRUE(done.tokens.empty());
  }
}

}  // namespace
}  // namespace outrider
