// SPDX-License-Identifier: Apache-2.0
// Draft models: the weights of boost-tuning, texts they write themselves, and runs.
#include "training/heads/draft_model.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "draft_heads/fake_head.h"
#include "training/core/safetensors_file.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/head_run_fixture.h"
#include "training/heads/head_trainer.h"

namespace outrider::training {
namespace {

const std::string kSmall = "--hidden 64 --layers 1 --heads 2 --kv-heads 1 --ffn 64 ";

at::Tensor fake(const std::string& name, const std::vector<int64_t>& shape) {
  std::vector<float> values = fake_tensor(name, shape);
  return at::from_blob(values.data(), shape, at::kFloat).clone();
}

// Follows the definition: averages over all continuations of `depth` tokens that contain the row's token.
double plain_share(const at::Tensor& right, int64_t window, int64_t row, int64_t depth) {
  double reproduced = 0.0;
  for (int64_t start = row - depth + 1; start <= row; ++start) {
    bool is_whole = start >= 0;
    for (int64_t i = start; is_whole && i < start + depth; ++i)
      is_whole = i < right.size(1) && right[window][i].item<float>() == 1.0f;
    reproduced += is_whole ? 1.0 : 0.0;
  }
  return reproduced / static_cast<double>(depth);
}

TEST(BoostTuning, AShareIsThatOfTheContinuationsReproduced) {
  const at::Tensor right = fake("right", {3, 17}).gt(-0.1).to(at::kFloat);
  for (const int64_t depth : {1, 2, 4, 20}) {
    const at::Tensor share = reproduced_share(right, depth);
    for (int64_t w = 0; w < 3; ++w) {
      for (int64_t t = 0; t < 17; ++t)
        EXPECT_FLOAT_EQ(share[w][t].item<float>(), static_cast<float>(plain_share(right, w, t, depth)));
    }
  }
}

class DraftModelTest : public HeadRunTest {
 protected:
  DraftModelTest() {
    auto opened = FrozenTarget::open(target_path(), 1);
    EXPECT_TRUE(opened.ok());
    target_ = std::move(*opened);
  }

  std::unique_ptr<DraftHead> make(const std::string& arguments) const {
    HeadOptions given = options("unused", 1);
    given.products = at::kFloat;
    auto head = recipe_of("draft", kSmall + arguments)
                    .make({.target = *target_, .options = given, .token_counts = {}, .device = at::kCPU});
    EXPECT_TRUE(head.ok()) << head.error().message;
    return std::move(*head);
  }

  std::unique_ptr<FrozenTarget> target_;
};

// The earlier draft is the target itself, which is right wherever the states are its own.
TEST_F(DraftModelTest, WhatOtherDraftsReproduceHasNoWeight) {
  constexpr int64_t kLength = 24, kDepth = 3;
  std::vector<TokenId> text;
  for (int64_t i = 0; i < kLength; ++i) text.push_back(static_cast<TokenId>((5 * i * i + 3) % 250));
  const std::span<const TokenId> span = text;
  const auto states = target_->run({&span, 1});
  ASSERT_TRUE(states.ok());
  const int64_t hidden = target_->config().hidden_size;
  HeadBatch batch;
  batch.tokens = at::empty({1, kLength}, at::kLong);
  for (int64_t i = 0; i < kLength; ++i) batch.tokens[0][i] = text[static_cast<size_t>(i)];
  batch.known = at::ones({1, kLength});
  batch.counted = at::ones({1, kLength});
  batch.counted[0].narrow(0, 0, 3).zero_();
  batch.hidden = (*states)[0].hidden.clone().view({1, kLength, hidden});
  for (const int64_t row : {6, 15}) batch.hidden[0][row] = fake("state" + std::to_string(row), {hidden}) * 10;

  const at::Tensor head = target_->output_head();
  const at::Tensor right = at::linear((*states)[0].hidden, head)
                               .argmax(-1)
                               .eq(at::linear(batch.hidden[0], head).argmax(-1))
                               .to(at::kFloat)
                               .view({1, kLength});
  ASSERT_EQ(right[0][6].item<float>(), 0.0f);
  right[0][kLength - 1] = 0.0f;  // no token follows the last row
  for (const double weight : {0.0, 0.25}) {
    HeadBatch reweighted = batch;
    reweighted.counted = batch.counted.clone();
    for (int64_t t = 0; t + 1 < kLength; ++t)
      reweighted.counted[0][t + 1] *= 1.0 - (1.0 - weight) * plain_share(right, 0, t, kDepth);
    const auto boosted = make("--boost " + target_path().string() + " --boost-depth 3 --boost-weight " +
                              std::to_string(weight));
    const double found = boosted->loss(batch).loss.item<double>();
    EXPECT_NEAR(found, make("")->loss(reweighted).loss.item<double>(), 1e-5);
    EXPECT_GT(std::abs(found - make("")->loss(batch).loss.item<double>()), 1e-3);
    HeadBatch measured = batch;
    measured.measures = true;  // measures the whole text
    EXPECT_NEAR(boosted->loss(measured).loss.item<double>(), make("")->loss(batch).loss.item<double>(), 1e-5);
  }
}

TEST_F(DraftModelTest, ItsOwnTextsKeepThePromptsAndDependOnTheSeedAlone) {
  const HeadData text = data();
  std::vector<Window> windows = text.batch(0);
  std::vector<uint8_t> counted(windows[0].tokens.size(), 1);
  std::fill_n(counted.begin(), 10, uint8_t{0});
  windows[0].counted = counted;
  EXPECT_TRUE(make("")->rewritten(windows, 1).empty());
  const auto head = make("--on-policy 1");
  const std::vector<Document> own = head->rewritten(windows, 7), again = head->rewritten(windows, 7),
                              other = head->rewritten(windows, 8);
  ASSERT_EQ(own.size(), windows.size());
  bool differs = false;
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_EQ(own[i].tokens, again[i].tokens);
    differs = differs || own[i].tokens != other[i].tokens;
    ASSERT_EQ(own[i].tokens.size(), windows[i].tokens.size());
    ASSERT_EQ(own[i].counted.size(), windows[i].tokens.size());
    const size_t prompt = std::min(i == 0 ? size_t{10} : size_t{8}, own[i].tokens.size());
    EXPECT_TRUE(std::equal(own[i].tokens.begin(), own[i].tokens.begin() + static_cast<int64_t>(prompt),
                           windows[i].tokens.begin()));
  }
  EXPECT_TRUE(differs);
}

// A resumed run finds the same self-written text, serving results and first draft again.
TEST_F(DraftModelTest, ABoostedPairIsServedAndResumesInTheSameBits) {
  const Status first = train_head(recipe_of("draft", kSmall), options("first", 4));
  ASSERT_TRUE(first.ok()) << first.error().message;
  const HeadRecipe recipe = recipe_of(
      "draft", kSmall + "--on-policy 0.5 --divergence reverse --boost " + files_.path("first").string());
  const Status second = train_head(recipe, options("whole", 8));
  ASSERT_TRUE(second.ok()) << second.error().message;
  HeadOptions interrupted = options("cut", 8);
  ASSERT_TRUE(train_head(recipe, interrupted).ok());
  std::filesystem::remove_all(files_.path("cut/checkpoints/step-000000008"));
  interrupted.resume = true;
  ASSERT_TRUE(train_head(recipe, interrupted).ok());
  for (const char* file : {"/checkpoints/step-000000008/tensors.safetensors",
                           "/checkpoints/step-000000008/state.json", "/model.safetensors"})
    EXPECT_EQ(files_.read(std::string("whole") + file), files_.read(std::string("cut") + file)) << file;
  const auto state = nlohmann::json::parse(files_.read("whole/checkpoints/step-000000008/state.json"));
  EXPECT_GE(state.at("acceptance").at(0).at("shared_tree").get<double>(), 1.0);
  EXPECT_THAT(files_.read("whole/report.html"), testing::HasSubstr("first, chain"));
}

TEST_F(DraftModelTest, InitBeginsWithAModelsShapeAndWeights) {
  const HeadRecipe wide = recipe_of("draft", "--hidden 96 --layers 1 --heads 3 --kv-heads 1 --ffn 32");
  ASSERT_TRUE(train_head(wide, options("first", 4)).ok());
  const auto exported = make("--init " + files_.path("first").string())->exported();
  EXPECT_EQ(exported.config.at("hidden_size"), 96);
  const auto stored = read_safetensors(files_.path("first/model.safetensors"));
  ASSERT_TRUE(stored.ok()) << stored.error().message;
  ASSERT_EQ(exported.tensors.size(), stored->size());
  for (const auto& [name, tensor] : *stored) {
    const auto same = std::find_if(exported.tensors.begin(), exported.tensors.end(),
                                   [&, &wanted = name](const auto& one) { return one.first == wanted; });
    ASSERT_NE(same, exported.tensors.end()) << name;
    EXPECT_TRUE(same->second.to(at::kBFloat16).equal(tensor)) << name;
  }
}

}  // namespace
}  // namespace outrider::training
