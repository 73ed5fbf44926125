// SPDX-License-Identifier: Apache-2.0
// Scheduler, KV, trees, acceptance and commit together, on a model that notices every wrong entry.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <random>
#include <vector>

#include "base/sanitized.h"
#include "drafters/registry.h"
#include "speculation/acceptance/thinking_phase.h"
#include "speculation/tree/tree_policy.h"
#include "tests/lossless/covering_array.h"
#include "tests/lossless/hash_run.h"

namespace outrider {
namespace {

TEST(HashModel, EveryRequestGetsWhatPlainDecodingGives) {
  const auto rows = covering_array<3>(kHashLevels);
  std::cout << rows.size() << " configurations\n";
  uint32_t seed = 1;
  for (int round = 0; round < repetitions(3); ++round) {
    for (const HashConfiguration& row : rows) {
      run_on_hash_model(row, seed++);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(HashModel, TextsThatFillTheContextSlideAsInPlainDecoding) {
  RunTotals totals;
  uint32_t seed = 1;
  for (const HashConfiguration& row : covering_array<2>(kHashLevels)) {
    for (int round = 0; round < 6; ++round) {
      run_sliding_texts(row, seed++, totals);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(totals.slid, 500);
  EXPECT_GT(totals.accepted, 500);
}

SpeculativeOptions random_early_exit(std::mt19937& random, int max_draft_len) {
  SpeculativeOptions options;
  options.decoding_type = Method::kEarlyExit;
  options.max_draft_len = max_draft_len;
  options.tree.kind = static_cast<TreeKind>(random() % 3);
  options.tree.expansion.assign(static_cast<size_t>(max_draft_len), 1);
  for (int& width : options.tree.expansion)
    width = max_tree_nodes(options) < 100 ? 1 + static_cast<int>(random() % 3) : 1;
  options.tree.dynamic_tree_max_top_k = 1 + static_cast<int>(random() % 4);
  options.tree.max_total_draft_tokens =
      options.tree.dynamic_tree_max_top_k * max_draft_len + static_cast<int>(random() % 8);
  options.tree.children = static_cast<ChildrenChoice>(random() % 3);
  if (random() % 2 == 0) options.stop.assistant_confidence_threshold = 0.05;
  if (random() % 4 == 0) options.stop.entropy_threshold = 0.5;
  if (random() % 4 == 0) options.early_exit.skip_mlp_layers = {1};
  if (random() % 4 == 0) {
    options.decoding_type = Method::kCombined;
    options.combine = {Method::kEarlyExit, Method::kNGram};
    if (random() % 2 == 0) std::swap(options.combine[0], options.combine[1]);
  }
  return options;
}

// The pass takes keys and values of the first layer, and the states that enter the second, from the drafter.
TEST(HashModel, TheTargetTakesUpWhatEarlyExitComputed) {
  RunTotals totals;
  for (uint32_t seed = 1; seed <= 250; ++seed) {
    std::mt19937 random(seed);
    HashConfiguration configuration;
    for (size_t factor = 0; factor < configuration.size(); ++factor)
      configuration[factor] = static_cast<int>(random() % static_cast<unsigned>(kHashLevels[factor]));
    configuration[kPolicyFactor] = 0;  // drafts as far as the limits allow
    EngineSetup setup = setup_of(configuration);
    setup.speculation = random_early_exit(random, 1 + static_cast<int>(random() % 16));
    auto made = make_drafter(setup.speculation, context_of(setup));
    ASSERT_TRUE(made.ok()) << made.error().message;
    std::shared_ptr<Drafter> drafter = *made;
    if (random() % 3 == 0) drafter = meddled(drafter, static_cast<uint32_t>(random()));
    run_on_hash_model(configuration, seed, setup, drafter, totals);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(totals.committed, totals.steps * 5 / 4);
}

// A drafter without errors drafts the target's own tokens, under its constraint and with its noise: every
// node up to the end of the sequence is accepted.
TEST(HashModel, DraftsAreMadeUnderTheRequestsConstraintAndStream) {
  constexpr int kOwnOfOne = 1;  // batch of two
  for (int i = 0; i < 2 * kHashLevels[kLanguageFactor]; ++i) {
    const DrafterKind drafter = i % 2 == 0 ? DrafterKind::kHash : DrafterKind::kDraftTarget;
    const int language = i / 2;
    for (const int temperature : {0, 1, 2}) {
      HashConfiguration configuration{};
      configuration[kDrafterFactor] = static_cast<int>(drafter);
      configuration[kTreeFactor] = 1;
      configuration[kPageFactor] = 4;
      configuration[kBatchFactor] = kOwnOfOne;
      configuration[kTemperatureFactor] = temperature;
      configuration[kLanguageFactor] = language;
      RunTotals totals;
      for (uint32_t seed = 1; seed <= 40; ++seed) {
        run_on_hash_model(configuration, seed, totals);
        if (HasFatalFailure()) return;
      }
      EXPECT_GT(totals.drafted, 100) << "language " << language;
      EXPECT_GT(totals.accepted * 10, totals.drafted * 8)
          << "language " << language << ", temperature " << temperature << ": " << totals.accepted << " of "
          << totals.drafted;
    }
  }
}

// In every third pass the first entry keeps the bytes of another token.
class ForgetfulModel final : public HashModel {
 public:
  using HashModel::HashModel;

  std::span<const float> forward(const ForwardBatch& batch, KvCache& cache) override {
    std::byte* entry = cache.keys(0) + batch.slots.front() * cache.shape().row_bytes();
    const std::vector<std::byte> stale(entry, entry + cache.shape().row_bytes());
    const auto logits = HashModel::forward(batch, cache);
    if (++passes_ % 3 == 0) std::copy(stale.begin(), stale.end(), entry);
    return logits;
  }

 private:
  int passes_ = 0;
};

HashConfiguration of_draft_target(std::mt19937& random) {
  HashConfiguration configuration;
  for (size_t factor = 0; factor < configuration.size(); ++factor)
    configuration[factor] = static_cast<int>(random() % static_cast<unsigned>(kHashLevels[factor]));
  configuration[kDrafterFactor] = static_cast<int>(DrafterKind::kDraftTarget);
  configuration[kPolicyFactor] = 0;
  configuration[kPredictionFactor] = 0;  // which would draft in place of the model
  return configuration;
}

TEST(HashModel, AStaleEntryOfADraftModelIsFoundThoughTheOutputStays) {
  for (const bool forgets : {false, true}) {
    RunTotals totals;
    for (uint32_t seed = 1; seed <= 60; ++seed) {
      std::mt19937 random(seed);
      const HashConfiguration configuration = of_draft_target(random);
      const EngineSetup setup = setup_of(configuration);
      std::unique_ptr<HashModel> model = std::make_unique<HashModel>();
      if (forgets) model = std::make_unique<ForgetfulModel>();
      const auto drafter =
          hash_draft_target(std::move(model), setup.speculation, context_of(setup), totals.drafts);
      run_on_hash_model(configuration, seed, setup, drafter, totals);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(totals.drafts.trees, 1000);
    if (forgets) {
      EXPECT_GT(totals.drafts.differing, totals.drafts.trees / 10);
    } else {
      EXPECT_EQ(totals.drafts.differing, 0);
    }
  }
}

TEST(HashModel, AStaleEntryOfTheTargetChangesTheOutput) {
  int changed = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const HashConfiguration configuration = of_draft_target(random);
    const EngineSetup setup = setup_of(configuration);
    DraftComparison drafts;
    auto parts = hash_parts(setup, drafter_of(configuration, setup, seed, drafts));
    parts->target = std::make_unique<ForgetfulModel>();
    Request request;
    request.prompt = {1, 2, 3};
    request.max_tokens = 60;
    request.ignore_eos = true;
    const auto completion = Engine::assemble(std::move(parts))->generate(request);
    ASSERT_TRUE(completion.ok());
    changed += completion->tokens != plain_output(HashModel(), request, kContext).tokens ? 1 : 0;
    EXPECT_EQ(drafts.differing, 0);
  }
  EXPECT_EQ(changed, 60);
}

// Measured times decide what is drafted, but not the output.
TEST(HashModel, ThePolicyDraftsLessAndChangesNoOutput) {
  RunTotals whole, by_policy;
  for (uint32_t seed = 1; seed <= 120; ++seed) {
    std::mt19937 random(seed);
    HashConfiguration configuration = of_draft_target(random);
    run_on_hash_model(configuration, seed, whole);
    configuration[kPolicyFactor] = 1 + static_cast<int>(seed % 2);
    run_on_hash_model(configuration, seed, by_policy);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(by_policy.committed, whole.committed);
  EXPECT_GT(by_policy.drafted, 0);
  EXPECT_LT(by_policy.drafted, whole.drafted);
}

TEST(HashModel, AGoodDrafterNeedsFewerPasses) {
  auto drafter = std::make_shared<OracleDrafter>(0.0, false, false, 7);
  auto parts = hash_parts({}, drafter);
  const HashModel model;
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

Completion with_prediction(Method method, Request request, std::vector<TokenId> prediction) {
  EngineSetup setup;
  setup.max_batch = 1;
  setup.speculation.decoding_type = method;
  auto drafter = make_drafter(setup.speculation, context_of(setup));
  EXPECT_TRUE(drafter.ok());
  request.prediction = std::move(prediction);
  auto completion = Engine::assemble(hash_parts(setup, *drafter))->generate(std::move(request));
  EXPECT_TRUE(completion.ok());
  return *completion;
}

TEST(HashModel, ARightPredictionNeedsFewPassesWithEveryMethodThatDrafts) {
  Request request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 60;
  request.ignore_eos = true;
  const std::vector<TokenId> answer = plain_output(HashModel(), request, kContext).tokens;
  for (const Method method : {Method::kNGram, Method::kSuffix, Method::kLookahead, Method::kEarlyExit}) {
    const Completion completion = with_prediction(method, request, answer);
    EXPECT_EQ(completion.tokens, answer);
    EXPECT_LE(completion.speculation.steps, 4);
    EXPECT_EQ(completion.accepted_prediction_tokens, 60);
    EXPECT_EQ(completion.rejected_prediction_tokens, 0);
  }
  const Completion plain = with_prediction(Method::kNone, request, answer);
  EXPECT_EQ(plain.tokens, answer);
  EXPECT_EQ(plain.speculation.steps, 60);
  EXPECT_EQ(plain.speculation.drafted, 0);
  EXPECT_EQ(plain.accepted_prediction_tokens, 60);
}

// The counts depend on the text, not on how it was drafted.
TEST(HashModel, TokensOfAPredictionCountAsAcceptedWhereTheOutputHasThem) {
  Request request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 40;
  request.ignore_eos = true;
  std::vector<TokenId> prediction = plain_output(HashModel(), request, kContext).tokens;
  prediction[20] = (prediction[20] + 1) % kLetters;
  prediction.insert(prediction.end(), 7, TokenId{0});
  for (const Method method : {Method::kNone, Method::kNGram}) {
    const Completion completion = with_prediction(method, request, prediction);
    EXPECT_EQ(completion.accepted_prediction_tokens, 39);
    EXPECT_EQ(completion.rejected_prediction_tokens, 8);
  }
}

TEST(HashModel, RefusesAPredictionOutsideTheVocabulary) {
  const auto engine = Engine::assemble(hash_parts({}, std::make_shared<OracleDrafter>(0.0, false, false, 7)));
  Request request;
  request.prompt = {1};
  request.prediction = {kLetters + 1};
  const auto refused = engine->submit(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("outside the vocabulary"), std::string::npos);
}

TEST(HashModel, CancelFreesThePagesAndSparesTheOthers) {
  auto parts = hash_parts({}, std::make_shared<OracleDrafter>(1.0, false, false, 7));
  const HashModel model;
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

// While the model thinks every draft passes; before and after, only the target's own tokens do.
TEST(HashModel, RelaxedAcceptanceTouchesTheThinkingPhaseAlone) {
  constexpr TokenId kBegin = 1;
  constexpr TokenId kEnd = 2;
  const HashModel model;
  for (const int top_k : {1, kLetters + 1}) {
    int relaxed = 0;
    int thinking = 0;
    for (uint32_t seed = 0; seed < 40; ++seed) {
      EngineSetup setup;
      setup.acceptance = AcceptanceRule::kRelaxed;
      setup.speculation.relaxed.top_k = top_k;
      setup.speculation.relaxed.delta = 1.0;
      setup.speculation.relaxed.space = RelaxedSpace::kProbability;
      setup.speculation.relaxed.begin_thinking_token = kBegin;
      setup.speculation.relaxed.end_thinking_token = kEnd;
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
