// SPDX-License-Identifier: Apache-2.0
// Scheduler, KV, trees, acceptance and commit together, on a model that notices every wrong entry.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "covering_array.h"
#include "hash_run.h"
#include "speculation/thinking_phase.h"

namespace outrider {
namespace {

TEST(HashModel, EveryRequestGetsWhatPlainDecodingGives) {
  const auto rows = covering_array(kHashLevels);
  std::cout << rows.size() << " configurations\n";
  uint32_t seed = 1;
  for (int round = 0; round < 3; ++round) {
    for (const HashConfiguration& row : rows) {
      run_on_hash_model(row, seed++);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(HashModel, AGoodDrafterNeedsFewerPasses) {
  auto drafter = std::make_shared<OracleDrafter>(0.0, false, false, 7);
  auto parts = hash_parts({}, drafter);
  const HashModel model(kLetters + 1 + kPadding);
  Request request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 60;
  request.ignore_eos = true;
  const Expected expected = plain_output(model, request, 100);
  drafter->know(request.prompt, expected.tokens);
  const auto engine = Engine::assemble(std::move(parts));
  const auto completion = engine->generate(request);
  ASSERT_TRUE(completion.ok());
  EXPECT_EQ(completion->tokens, expected.tokens);
  EXPECT_LT(completion->speculation.steps, 40);
  EXPECT_EQ(completion->speculation.accepted, completion->speculation.drafted);
}

TEST(HashModel, CancelFreesThePagesAndSparesTheOthers) {
  auto parts = hash_parts({}, std::make_shared<OracleDrafter>(1.0, false, false, 7));
  const HashModel model(kLetters + 1 + kPadding);
  const auto engine = Engine::assemble(std::move(parts));
  const int64_t all_pages = engine->free_pages();
  Request request;
  request.prompt = {4, 5, 6};
  request.max_tokens = 50;
  request.ignore_eos = true;
  FinishReason reason = FinishReason::kLength;
  const auto doomed = engine->submit(request, [&](RequestId, const Progress& progress) {
    if (progress.completion != nullptr) reason = progress.completion->finish_reason;
  });
  request.prompt = {7, 8};
  std::vector<TokenId> survivor;
  const auto other = engine->submit(request, [&](RequestId, const Progress& progress) {
    if (progress.completion != nullptr) survivor = progress.completion->tokens;
  });
  ASSERT_TRUE(doomed.ok() && other.ok());
  for (int i = 0; i < 5; ++i) engine->step();
  engine->cancel(*doomed);
  while (engine->step()) {
  }
  EXPECT_EQ(reason, FinishReason::kCancelled);
  EXPECT_EQ(survivor, plain_output(model, request, 100).tokens);
  EXPECT_EQ(engine->free_pages(), all_pages);
}

// Any draft passes while the model thinks; before and after, its own tokens alone.
TEST(HashModel, RelaxedAcceptanceTouchesTheThinkingPhaseAlone) {
  constexpr TokenId kBegin = 1;
  constexpr TokenId kEnd = 2;
  const HashModel model(kLetters + 1 + kPadding);
  for (const int top_k : {1, kLetters + 1}) {
    int relaxed = 0;
    int thinking = 0;
    for (uint32_t seed = 0; seed < 40; ++seed) {
      EngineSetup setup;
      setup.acceptance = AcceptanceRule::kRelaxed;
      setup.speculation.relaxed_topk = top_k;
      setup.speculation.relaxed_delta = 1.0;
      setup.speculation.begin_thinking_phase_token = kBegin;
      setup.speculation.end_thinking_phase_token = kEnd;
      const auto engine = Engine::assemble(
          hash_parts(setup, std::make_shared<OracleDrafter>(1.0, seed % 2 == 0, false, seed)));
      Request request;
      request.prompt = {4, seed % 4 < 2 ? kBegin : TokenId{5}, static_cast<TokenId>(seed % kLetters)};
      request.max_tokens = 60;
      request.ignore_eos = true;
      const auto completion = engine->generate(request);
      ASSERT_TRUE(completion.ok()) << completion.error().message;
      EXPECT_FALSE(completion->speculation.lossless);
      std::vector<TokenId> text = request.prompt;
      ThinkingPhase phase{kBegin, kEnd};
      for (const TokenId token : text) phase.push(token);
      for (const TokenId token : completion->tokens) {
        const std::vector<float> logits = model.logits_after(text);
        const auto own = std::max_element(logits.begin(), logits.begin() + kLetters + 1) - logits.begin();
        thinking += phase.is_open ? 1 : 0;
        relaxed += token == own ? 0 : 1;
        ASSERT_TRUE(token == own || phase.is_open) << "seed " << seed << ", place " << text.size();
        text.push_back(token);
        phase.push(token);
      }
    }
    EXPECT_GT(thinking, 100);
    EXPECT_EQ(relaxed > 50, top_k > 1) << relaxed;
    if (top_k == 1) {
      EXPECT_EQ(relaxed, 0) << "the top alone is greedy";
    }
  }
}

}  // namespace
}  // namespace outrider
