// SPDX-License-Identifier: Apache-2.0
// Compares losses and gradients of MoA, DFlash and DSpark with an independent PyTorch version
// (tools/head_goldens/context_training.py), and the trained networks with the served ones.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "draft_heads/fake_head.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/block_backbone.h"
#include "training/heads/head_recipes.h"
#include "training/heads/moa_head.h"

namespace outrider::training {
namespace {

at::Tensor fake(const std::string& name, const std::vector<int64_t>& shape) {
  std::vector<float> values = fake_tensor(name, shape);
  return at::from_blob(values.data(), shape, at::kFloat).clone();
}

// The states are five times as large as fake weights.
HeadBatch make_batch(const nlohmann::json& golden, const FrozenTarget& target, int64_t taps) {
  const int64_t windows = golden.at("windows"), length = golden.at("length");
  const ModelConfig& config = target.config();
  HeadBatch batch;
  batch.tokens = at::empty({windows, length}, at::kLong);
  batch.counted = at::empty({windows, length});
  for (int64_t w = 0; w < windows; ++w) {
    for (int64_t i = 0; i < length; ++i) {
      const auto window = static_cast<size_t>(w), place = static_cast<size_t>(i);
      batch.tokens[w][i] = golden.at("tokens").at(window).at(place).get<int64_t>();
      batch.counted[w][i] = golden.at("counted").at(window).at(place).get<float>();
    }
  }
  batch.known = at::ones({windows, length});
  const auto states = [&](const std::string& name, std::vector<int64_t> shape) {
    shape.insert(shape.begin(), {windows, length});
    return fake(name, shape) * 5.0;
  };
  batch.hidden = states("hidden", {config.hidden_size});
  batch.features = states("features", {taps * config.hidden_size});
  batch.keys_values = states("keys_values", {config.layer_count, config.kv_head_count, 2, config.head_dim});
  batch.seed = golden.at("seed");
  return batch;
}

void check_case(const nlohmann::json& golden, const nlohmann::json& expected) {
  const auto target = FrozenTarget::open(OUTRIDER_SOURCE_DIR "/tests/data/models/llama", 1);
  ASSERT_TRUE(target.ok()) << target.error().message;
  const std::vector<HeadRecipe> recipes = head_recipes();
  const HeadRecipe& recipe =
      *std::ranges::find(recipes, expected.at("kind").get<std::string>(), &HeadRecipe::command);
  CLI::App command;
  recipe.add_options(command);
  command.parse(expected.at("arguments").get<std::string>());
  HeadOptions options = recipe.defaults;
  options.context = golden.at("length");
  options.products = at::kFloat;
  const std::vector<int64_t> counts((*target)->config().vocab_size, 1);
  const auto head = recipe.make({**target, options, counts, at::kCPU});
  ASSERT_TRUE(head.ok()) << head.error().message;
  {
    const at::NoGradGuard no_grad;
    for (auto& [name, tensor] : (*head)->parameters()) tensor.copy_(fake(name, tensor.sizes().vec()));
  }
  const int64_t taps = std::ssize((*head)->needs().taps);
  const HeadLoss loss = (*head)->loss(make_batch(golden, **target, std::max<int64_t>(1, taps)));
  loss.loss.backward();
  const double wanted = expected.at("loss");
  EXPECT_NEAR(loss.loss.item<double>(), wanted, 1e-4 * std::max(1.0, wanted));
  const auto& gradients = expected.at("gradients");
  ASSERT_EQ((*head)->parameters().size(), gradients.size());
  for (const auto& [name, tensor] : (*head)->parameters()) {
    ASSERT_TRUE(tensor.grad().defined()) << name;
    const at::Tensor gradient = tensor.grad().flatten();
    const auto& found = gradients.at(name);
    const double norm = found.at("norm");
    EXPECT_NEAR(gradient.norm().item<double>(), norm, 1e-4 * norm) << name;
    const int64_t step = std::max<int64_t>(1, gradient.numel() / 7);
    for (size_t i = 0; i < found.at("some").size(); ++i) {
      EXPECT_NEAR(gradient[static_cast<int64_t>(i) * step].item<double>(),
                  found.at("some").at(i).get<double>(), 1e-4 * norm)
          << name << ", " << i;
    }
  }
}

TEST(ContextHeads, LossAndGradientsAreThoseOfPyTorch) {
  std::ifstream stream(OUTRIDER_SOURCE_DIR "/tests/data/heads/context_training.json");
  const auto golden = nlohmann::json::parse(stream);
  ASSERT_EQ(golden.at("cases").size(), 6u);
  for (const auto& expected : golden.at("cases")) {
    SCOPED_TRACE(expected.at("kind").get<std::string>() + " " + expected.at("arguments").get<std::string>());
    check_case(golden, expected);
  }
}

TEST(ContextHeads, AnchorsLeaveRoomForTheirBlocks) {
  for (const int64_t count : {1, 4, 15}) {
    const at::Tensor anchors = sampled_anchors(3, {50, count}, 20, 4);
    EXPECT_GE(anchors.min().item<int64_t>(), 1);
    EXPECT_LE(anchors.max().item<int64_t>(), 15);
  }
  EXPECT_TRUE(sampled_anchors(3, {2, 15}, 20, 4)[1].equal(at::arange(1, 16)));
}

TEST(ContextHeads, LayerSelfAttentionHasHeadsThatDivideKeysAndValues) {
  const auto heads = [](int64_t count, int64_t kv_count, int64_t dim) {
    ModelConfig target;
    target.head_count = count;
    target.kv_head_count = kv_count;
    target.head_dim = dim;
    return moa_layer_heads(target);
  };
  EXPECT_EQ(heads(32, 8, 128), 32);  // Llama 3, as published
  EXPECT_EQ(heads(16, 2, 128), 16);  // Qwen2.5 3B
  EXPECT_EQ(heads(9, 3, 64), 6);     // SmolLM2: 9 heads do not divide 384 numbers
  EXPECT_EQ(heads(14, 2, 64), 4);    // Qwen2.5 0.5B: nor 14 heads 256
}

TEST(ContextHeads, PeriodsAreSixToFourteen) {
  const at::Tensor periods = sampled_periods(1, 2000);
  for (int64_t period = 6; period <= 14; ++period)
    EXPECT_NEAR(periods.eq(period).sum().item<double>(), 2000.0 / 9.0, 60.0) << period;
}

}  // namespace
}  // namespace outrider::training
