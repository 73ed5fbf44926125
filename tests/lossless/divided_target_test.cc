// SPDX-License-Identifier: Apache-2.0
// Engines with a target that is divided among ranks, here threads. Every way to draft writes the text of one
// rank, and a rank that ends in the middle of a request ends it with an error.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "config/methods.h"
#include "models/backend/device/make_backends.h"
#include "outrider/engine.h"
#include "tests/support/built_in_methods.h"

namespace outrider {
namespace {

const std::string kModels = std::string(OUTRIDER_SOURCE_DIR) + "/models/";

struct Division {
  int shards = 1;
  int stages = 1;
};

// The files of a drafter; the draft model for drafters that need none.
std::string files_of(const std::string& drafter) {
  const std::string own = kModels + "outrider-" + drafter;
  return std::filesystem::exists(own) ? own : kModels + "outrider-draft";
}

EngineOptions options_for(const std::string& drafter, Division division) {
  EngineOptions options;
  options.model = kModels + "outrider-small";
  options.threads = division.shards * division.stages;
  options.tensor_parallel = division.shards;
  options.pipeline_parallel = division.stages;
  options.context = 192;
  options.max_batch = 8;
  options.prefill_chunk = 64;
  options.page_size = 4;
  options.speculation.decoding_type = *find_method(drafter);
  options.speculation.speculative_model = files_of(drafter);
  if (drafter == "spec_infer") options.speculation.speculative_models = {kModels + "outrider-draft"};
  return options;
}

const char* const kTexts[] = {"Once upon a time, Lily found a red ball. Lily and the red ball",
                              "The cat sat on the",
                              "Tom and Sue went to the park. Tom and Sue",
                              "One day a bird",
                              "The little dog was very happy because the little dog",
                              "Ben has a toy. Ben has",
                              "It was dark",
                              "Mom said to Tim that Mom"};

// The tokens of the first `batch` texts, decoded together.
std::vector<std::vector<TokenId>> decode(Engine& engine, size_t batch, double temperature) {
  std::vector<std::vector<TokenId>> tokens(batch);
  for (size_t i = 0; i < batch; ++i) {
    Request request;
    request.prompt = engine.tokenize(kTexts[i]);
    request.max_tokens = 20;
    request.ignore_eos = true;
    request.sampling.temperature = temperature;
    request.sampling.seed = 5 + i;
    const auto submitted = engine.submit(request, [&, i](RequestId, const Progress& progress) {
      if (progress.completion != nullptr) tokens[i] = progress.completion->tokens;
    });
    EXPECT_TRUE(submitted.ok()) << submitted.error().message;
  }
  while (engine.step()) {
  }
  return tokens;
}

using Texts = std::vector<std::vector<std::vector<TokenId>>>;

Texts texts_with(const EngineOptions& options) {
  const auto engine = Engine::open(options);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  Texts texts;
  if (!engine.ok()) return texts;
  for (const double temperature : {0.0, 1.0}) {
    for (const size_t batch : {1, 8}) texts.push_back(decode(**engine, batch, temperature));
  }
  return texts;
}

Texts texts_of(const std::string& drafter, Division division) {
  return texts_with(options_for(drafter, division));
}

std::vector<Division> divisions_for([[maybe_unused]] const std::string& drafter) {
#ifdef OUTRIDER_SLOW_TEST
  return {{1, 1}, {2, 1}, {4, 1}, {1, 2}, {2, 2}, {4, 2}};
#else
  if (drafter != "none") return {{2, 2}};
  return {{2, 1}, {4, 1}, {1, 2}};
#endif
}

std::vector<Division> divisions_on_devices([[maybe_unused]] const std::string& drafter) {
#ifdef OUTRIDER_SLOW_TEST
  return {{1, 1}, {2, 1}, {4, 1}, {1, 2}, {2, 2}};
#else
  if (drafter == "none") return {{1, 1}, {2, 1}, {4, 1}, {1, 2}};
  return {drafter == "eagle3" || drafter == "ngram" ? Division{2, 1} : Division{1, 2}};
#endif
}

TEST(Ranks, EveryDrafterWritesTheTextOfOneRank) {
  const Texts expected = texts_of("none", {});
  ASSERT_EQ(expected.size(), 4U);
  for (const std::string& drafter : built_in_methods()) {
    if (drafter == "moa") continue;  // reads the keys and values of all layers, and is refused
    for (const Division division : divisions_for(drafter)) {
      SCOPED_TRACE(drafter + ", " + std::to_string(division.shards) + " shards, " +
                   std::to_string(division.stages) + " stages");
      EXPECT_EQ(texts_of(drafter, division), expected);
    }
  }
}

// Under these rules the text depends on what is drafted, so that every pass drafts the same number.
TEST(Ranks, EveryRuleWritesTheTextOfOneRank) {
  for (const AcceptanceRule rule : {AcceptanceRule::kRejection, AcceptanceRule::kBlock,
                                    AcceptanceRule::kTypical, AcceptanceRule::kRelaxed}) {
    for (const char* drafter : {"draft_target", "eagle3"}) {
      const auto texts = [&](Division division) {
        EngineOptions options = options_for(drafter, division);
        options.acceptance = rule;
        // The first one is in most of the texts.
        options.speculation.relaxed = {
            .top_k = 4, .delta = 2, .begin_thinking_token = 325, .end_thinking_token = 202};
        return texts_with(options);
      };
      const Texts expected = texts({});
      ASSERT_EQ(expected.size(), 4U);
      for (const Division division : divisions_for(drafter)) {
        SCOPED_TRACE(std::string(drafter) + ", rule " + std::to_string(static_cast<int>(rule)) + ", " +
                     std::to_string(division.shards) + " shards, " + std::to_string(division.stages) +
                     " stages");
        EXPECT_EQ(texts(division), expected);
      }
    }
  }
}

// Each shard has a part of the outputs of every expert, and a stage has the experts of its layers.
TEST(Ranks, MixturesOfExpertsWriteTheTextOfOneRank) {
  const auto texts = [](const std::string& drafter, Division division) {
    EngineOptions options = options_for(drafter, division);
    options.model = "shape:moe-20m@3,q8_0,512";
    return texts_with(options);
  };
  const Texts expected = texts("none", {});
  ASSERT_EQ(expected.size(), 4U);
  for (const char* drafter : {"none", "ngram", "early_exit"}) {
    for (const Division division : divisions_for(drafter)) {
      SCOPED_TRACE(std::string(drafter) + ", " + std::to_string(division.shards) + " shards, " +
                   std::to_string(division.stages) + " stages");
      EXPECT_EQ(texts(drafter, division), expected);
    }
  }
}

// Each rank has a device and orders passes as lists, and the text is the text of one processor.
TEST(Ranks, DevicesWriteTheTextOfOneProcessor) {
  const auto kernels = select_device_kernels();
  if (!kernels.ok()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  const auto texts = [&](const std::string& drafter, Division division, ComputeDevice device) {
    EngineOptions options = options_for(drafter, division);
    options.weights = WeightPrecision::kQ4;
    options.kernels = std::string((*kernels)->name);
    options.device = device;
    const auto engine = Engine::open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    Texts texts;
    if (engine.ok()) texts = {decode(**engine, 1, 0), decode(**engine, 2, 1)};
    if (engine.ok() && device == ComputeDevice::kEmulated) {
      const EngineStatus status = (*engine)->status();
      EXPECT_GE(status.device->lists, division.shards * division.stages == 1 ? 1 : status.steps / 2);
    }
    return texts;
  };
  const Texts expected = texts("none", {}, ComputeDevice::kCpu);
  ASSERT_EQ(expected.size(), 2U);
  for (const char* drafter : {"none", "ngram", "draft_target", "eagle3", "mtp", "early_exit"}) {
    for (const Division division : divisions_on_devices(drafter)) {
      SCOPED_TRACE(std::string(drafter) + ", " + std::to_string(division.shards) + " shards, " +
                   std::to_string(division.stages) + " stages");
      EXPECT_EQ(texts(drafter, division, ComputeDevice::kEmulated), expected);
    }
  }
}

// Messages are by pass, so drafts make them fewer for each token.
TEST(Ranks, DraftsSaveMessages) {
  const auto count = [](const std::string& drafter) {
    const auto engine = Engine::open(options_for(drafter, {2, 1}));
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    decode(**engine, 1, 0);
    const int64_t before = (*engine)->status().rank_messages;
    const int64_t steps = (*engine)->status().steps;
    decode(**engine, 1, 0);
    return std::pair{(*engine)->status().rank_messages - before, (*engine)->status().steps - steps};
  };
  const auto [plain_messages, plain_steps] = count("none");
  const auto [messages, steps] = count("ngram");
  EXPECT_LT(steps, plain_steps);
  const double plain_each = static_cast<double>(plain_messages) / static_cast<double>(plain_steps);
  EXPECT_NEAR(static_cast<double>(messages) / static_cast<double>(steps), plain_each, 0.05 * plain_each);
}

TEST(Ranks, PartsThatNeedTheWholeTargetAreRefused) {
  EngineOptions limited = options_for("none", {2, 1});
  limited.memory_limit = int64_t{1} << 30;
  for (const auto& [options, reason] :
       {std::pair{limited, "--memory"}, std::pair{options_for("moa", {2, 1}), "MoA"}}) {
    const auto engine = Engine::open(options);
    ASSERT_FALSE(engine.ok());
    EXPECT_NE(engine.error().message.find(reason), std::string::npos) << engine.error().message;
  }
}

TEST(Ranks, MoreStagesThanLayersAreRefused) {
  const auto engine = Engine::open(options_for("none", {1, 100}));
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message.find("pipeline stages"), std::string::npos) << engine.error().message;
}

}  // namespace
}  // namespace outrider
