// SPDX-License-Identifier: Apache-2.0
// Texts that fill the context and go on: the text equals plain decoding with the same slides, for every
// drafter.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/lossless/lossless.h"

namespace outrider {
namespace {

constexpr int64_t kSmallContext = 96;

Workload sliding_workload(double temperature) {
  Workload workload{.prompts = mixed_prompts(2), .max_tokens = 130, .ignore_eos = true, .slide = 5};
  workload.sampling.temperature = temperature;
  workload.sampling.seed = 3;
  if (temperature == 0) workload.sampling.repetition_penalty = 1.1;
  return workload;
}

TEST(Slide, EveryDrafterKeepsTheText) {
  for (const double temperature : {0.0, 0.8}) {
    const Workload workload = sliding_workload(temperature);
    const Variant alone{.context = kSmallContext};
    const std::vector<Completion> plain = run_variant({}, alone, workload);
    ASSERT_EQ(plain.size(), 2U);
    for (const Completion& completion : plain) EXPECT_EQ(completion.tokens.size(), 130U);
    size_t turn = 0;
    for (const std::string& drafter : drafters()) {
      const Variant variant{.speculative = drafter + "," + shapes()[turn % shapes().size()],
                            .page_size = turn % 2 == 0 ? 16 : 3,
                            .batch = turn % 3 == 0 ? 1 : 2,
                            .prefill_chunk = turn % 2 == 0 ? 256 : 7,
                            .preempt_every = turn % 5 == 4 ? 5 : 0,
                            .context = kSmallContext};
      expect_same(plain, run_variant({}, variant, workload), describe(variant));
      ++turn;
    }
  }
}

// The first token after a slide is the first token of a request with the tokens that are left.
TEST(Slide, ATextGoesOnAsIfTheRestWereAllThereIs) {
  auto parts = open_variant({}, {.context = kSmallContext}, default_target());
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  const auto engine = Engine::assemble(std::move(parts).value());
  Request request{.prompt = engine->tokenize(mixed_prompts(1)[0])};
  request.max_tokens = kSmallContext;
  request.ignore_eos = true;
  request.slide = 4;
  const auto slid = engine->generate(request);
  ASSERT_TRUE(slid.ok()) << slid.error().message;
  ASSERT_EQ(std::ssize(slid->tokens), request.max_tokens);
  std::vector<TokenId> text = request.prompt;
  const auto room = static_cast<std::ptrdiff_t>(kSmallContext - std::ssize(text));
  text.insert(text.end(), slid->tokens.begin(), slid->tokens.begin() + room);
  text.erase(text.begin() + 4, text.begin() + 4 + (kSmallContext - 4) / 2);
  const auto rest = engine->generate({.prompt = text, .max_tokens = 8, .ignore_eos = true});
  ASSERT_TRUE(rest.ok()) << rest.error().message;
  const std::vector<TokenId> expected(slid->tokens.begin() + room, slid->tokens.begin() + room + 8);
  EXPECT_EQ(rest->tokens, expected);
}

TEST(Slide, WithoutItTheContextEndsTheText) {
  auto parts = open_variant({}, {.context = kSmallContext}, default_target());
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  const auto engine = Engine::assemble(std::move(parts).value());
  Request request{.prompt = {1, 2, 3}, .max_tokens = 200, .ignore_eos = true};
  const auto ended = engine->generate(request);
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_EQ(ended->finish_reason, FinishReason::kLength);
  EXPECT_EQ(std::ssize(ended->tokens), kSmallContext - 3);
  request.slide = kSmallContext - 1;
  const auto refused = engine->submit(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("slide must be 0 to the context less 2, 94"), std::string::npos)
      << refused.error().message;
}

// A request that goes on after earlier output slides where the first run did.
TEST(Slide, EarlierOutputSlidesAsBefore) {
  auto parts = open_variant({}, {.context = kSmallContext}, default_target());
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  const auto engine = Engine::assemble(std::move(parts).value());
  Request request{.prompt = {1, 2, 3}, .max_tokens = 220, .ignore_eos = true, .slide = 0};
  request.sampling.temperature = 0.7;
  const auto whole = engine->generate(request);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  for (const std::ptrdiff_t done : {50, 93, 94, 160}) {
    request.output.assign(whole->tokens.begin(), whole->tokens.begin() + done);
    const auto resumed = engine->generate(request);
    ASSERT_TRUE(resumed.ok()) << resumed.error().message;
    EXPECT_EQ(resumed->tokens, whole->tokens) << done;
  }
}

}  // namespace
}  // namespace outrider
