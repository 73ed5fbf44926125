// SPDX-License-Identifier: Apache-2.0
// Targets of every family: mixtures of experts, Gemma, Phi, layers with states.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "training/core/target_form.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/head_run_fixture.h"
#include "training/heads/head_trainer.h"

namespace outrider::training {
namespace {

std::vector<std::filesystem::path> models_of_all_families() {
  std::vector<std::filesystem::path> models;
  for (const auto& entry : std::filesystem::directory_iterator(target_path().parent_path()))
    if (entry.is_directory()) models.push_back(entry.path());
  std::sort(models.begin(), models.end());
  return models;
}

// The distribution that heads learn is the one that transformers found: embedding, states, output head, its
// scale and its cap.
TEST(AnyTarget, LogitsFollowFromItsStates) {
  for (const std::filesystem::path& model : models_of_all_families()) {
    SCOPED_TRACE(model.filename());
    const auto golden = nlohmann::json::parse(std::ifstream(model / "golden.json"));
    const auto target = FrozenTarget::open(model, 1, "reference");
    ASSERT_TRUE(target.ok()) << target.error().message;
    ASSERT_TRUE((*target)->want({}).ok());
    const auto prompt = golden.at("prompt").get<std::vector<TokenId>>();
    const std::vector<std::span<const TokenId>> windows = {prompt};
    auto states = (*target)->run(windows);
    ASSERT_TRUE(states.ok()) << states.error().message;
    at::Tensor logits = at::mv((*target)->output_head(), states->front().hidden[-1]);
    if (const double cap = (*target)->config().logit_softcap; cap > 0) logits = (logits / cap).tanh() * cap;
    const at::Tensor found = at::log_softmax(logits, 0);
    const auto ids = golden.at("top_ids")[0].get<std::vector<int64_t>>();
    const auto wanted = golden.at("top_logprobs")[0].get<std::vector<double>>();
    // Cached keys and values are bf16 here, f32 there.
    for (size_t i = 0; i < ids.size(); ++i) EXPECT_NEAR(found[ids[i]].item<double>(), wanted[i], 0.05);
  }
}

class AnyTargetTest : public HeadRunTest {};

TEST_F(AnyTargetTest, GetsAnEagle3HeadThatServesIt) {
  for (const std::string model : {"deepseek_v3", "gemma2", "gemma4", "granite4", "llama4", "olmoe", "opt"}) {
    SCOPED_TRACE(model);
    HeadOptions run = options(model, 2);
    run.target = target_path().parent_path() / model;
    run.prompt_limit = 1;
    const Status trained = train_head(recipe_of("eagle3"), run);
    EXPECT_TRUE(trained.ok()) << trained.error().message;
  }
}

TEST_F(AnyTargetTest, IsRefusedByKindsThatAreMadeOfItsLayers) {
  for (const std::string model : {"gemma2", "lfm2", "mixtral", "phi3"}) {
    HeadOptions run = options("refused", 4);
    run.target = target_path().parent_path() / model;
    const Status refused = train_head(recipe_of("mtp"), run);
    ASSERT_FALSE(refused.ok()) << model;
    EXPECT_THAT(refused.error().message, testing::HasSubstr("form of Llama"));
    EXPECT_THAT(refused.error().message, testing::HasSubstr("eagle3"));
  }
}

}  // namespace
}  // namespace outrider::training
