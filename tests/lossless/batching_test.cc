// SPDX-License-Identifier: Apache-2.0
// Requests that run together.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "drafters/registry.h"
#include "tests/lossless/hash_run.h"

namespace outrider {
namespace {

std::shared_ptr<Drafter> no_drafter() {
  SpeculativeOptions options;
  auto made = make_drafter(options, {});
  return *made;
}

Request request_of(int prompt_tokens, int64_t max_tokens) {
  Request request;
  for (int i = 0; i < prompt_tokens; ++i)
    request.prompt.push_back(static_cast<TokenId>((i * i + 3 * i) % kLetters));
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  return request;
}

void finish(Engine& engine) {
  while (engine.step()) {
  }
}

TEST(Batching, TheQueueIsBounded) {
  auto parts = hash_parts({.max_batch = 2}, no_drafter());
  parts->options.max_waiting = 1;
  const auto engine = Engine::assemble(std::move(parts));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(engine->submit(request_of(5, 5)).ok());
  const auto refused = engine->submit(request_of(5, 5));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kResource);
  EXPECT_NE(refused.error().message.find("1 requests wait"), std::string::npos) << refused.error().message;
  engine->step();
  EXPECT_EQ(engine->status().running, 2);
  EXPECT_EQ(engine->status().waiting, 1);
  finish(*engine);
  EXPECT_TRUE(engine->submit(request_of(5, 5)).ok());
  finish(*engine);
}

TEST(Batching, WhatCanNeverFitIsRefusedWithTheNumbers) {
  auto parts = hash_parts({.page_size = 4}, no_drafter());
  KvShape shape = parts->cache->shape();
  shape.page_count = 10;
  parts->cache = std::make_unique<KvCache>(shape);
  const auto engine = Engine::assemble(std::move(parts));
  const auto refused = engine->submit(request_of(30, 20));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kInput);
  EXPECT_NE(refused.error().message.find("50 tokens, 13 pages of the KV cache, which has 10"),
            std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(engine->submit(request_of(30, 10)).ok());
  finish(*engine);
}

TEST(Batching, StatusCountsEverything) {
  auto drafter = std::make_shared<OracleDrafter>(0.3, false, false, 7);
  const auto engine = Engine::assemble(hash_parts({.page_size = 4}, drafter));
  std::vector<Completion> completions;
  for (int i = 0; i < 3; ++i) {
    const Request request = request_of(10 + i, 20);
    drafter->know(request.prompt, plain_output(HashModel(), request, 100).tokens);
    ASSERT_TRUE(engine
                    ->submit(request,
                             [&](RequestId, const Progress& progress) {
                               if (progress.completion != nullptr)
                                 completions.push_back(*progress.completion);
                             })
                    .ok());
  }
  engine->step();
  EXPECT_GT(engine->status().used_pages, 0);
  finish(*engine);
  const EngineStatus status = engine->status();
  const auto sum = [&](auto member) {
    return std::accumulate(completions.begin(), completions.end(), int64_t{0},
                           [&](int64_t all, const Completion& one) { return all + member(one); });
  };
  ASSERT_EQ(completions.size(), 3U);
  EXPECT_EQ(status.running + status.waiting, 0);
  EXPECT_EQ(status.used_pages, 0);
  EXPECT_EQ(status.prompt_tokens, 33);
  EXPECT_EQ(status.cached_tokens, sum([](const Completion& one) { return one.cached_tokens; }));
  EXPECT_EQ(status.output_tokens, 60);
  EXPECT_EQ(status.speculation.committed, 60);
  EXPECT_EQ(status.speculation.steps, sum([](const Completion& one) { return one.speculation.steps; }));
  EXPECT_EQ(status.speculation.drafted, sum([](const Completion& one) { return one.speculation.drafted; }));
  EXPECT_EQ(status.speculation.accepted, sum([](const Completion& one) { return one.speculation.accepted; }));
  EXPECT_GT(status.speculation.accepted, 0);
  EXPECT_EQ(std::accumulate(status.speculation.accepted_per_position.begin(),
                            status.speculation.accepted_per_position.end(), int64_t{0}),
            status.speculation.accepted);
  // Every row is a prompt token that was not cached, a pending token or a drafted one.
  EXPECT_EQ(status.rows,
            33 - 3 - status.cached_tokens + status.speculation.steps + status.speculation.drafted);
  EXPECT_EQ(status.speedup, 0.0);  // no costs were measured
}

// When requests that begin alike come together, one computes the beginning and the others wait for it.
TEST(Batching, ASharedBeginningIsComputedOnce) {
  for (const uint64_t scopes : {1, 4}) {
    const auto engine = Engine::assemble(hash_parts({.page_size = 4, .prefill_chunk = 8}, no_drafter()));
    for (uint64_t i = 0; i < 4; ++i) {
      Request request = request_of(64, 4);
      request.sample_index = i;
      request.cache_scope = i % scopes;
      ASSERT_TRUE(engine->submit(std::move(request)).ok());
    }
    finish(*engine);
    EXPECT_EQ(engine->status().prompt_tokens, 256);
    EXPECT_EQ(engine->status().cached_tokens, scopes == 1 ? 3 * 60 : 0);
  }
}

// A prompt as long as the context takes many steps; a short one that came later does not wait for it.
TEST(Batching, ALongPromptStarvesNobody) {
  const auto engine = Engine::assemble(hash_parts({.prefill_chunk = 8}, no_drafter()));
  int step = 0, long_done = 0, short_done = 0;
  ASSERT_TRUE(engine->submit(request_of(90, 1), [&](RequestId, const Progress&) { long_done = step; }).ok());
  Request other = request_of(6, 1);
  other.prompt[0] = 1;
  ASSERT_TRUE(engine->submit(other, [&](RequestId, const Progress&) { short_done = step; }).ok());
  do ++step;
  while (engine->step());
  EXPECT_GE(long_done, 90 / 8);
  EXPECT_LE(short_done, 3);
}

}  // namespace
}  // namespace outrider
