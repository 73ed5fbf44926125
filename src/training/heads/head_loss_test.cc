// SPDX-License-Identifier: Apache-2.0
// Compares loss and gradients of every kind with an independent implementation in PyTorch
// (tools/head_goldens/training.py), in f32; weights and states are functions of their names.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "draft_heads/fake_head.h"
#include "training/core/decoder_layers.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/draft_head.h"
#include "training/heads/draft_model.h"
#include "training/heads/eagle3_head.h"
#include "training/heads/eagle_head.h"
#include "training/heads/medusa_head.h"
#include "training/heads/mtp_head.h"

namespace outrider::training {
namespace {

constexpr int64_t kWindows = 2, kLength = 9;
constexpr double kTolerance = 1e-4;

at::Tensor fake(const std::string& name, const std::vector<int64_t>& shape) {
  std::vector<float> values = fake_tensor(name, shape);
  return at::from_blob(values.data(), shape, at::kFloat).clone();
}

HeadBatch small_batch(int64_t hidden, int64_t vocab) {
  HeadBatch batch;
  batch.tokens = at::empty({kWindows, kLength}, at::kLong);
  for (int64_t w = 0; w < kWindows; ++w) {
    for (int64_t t = 0; t < kLength; ++t) batch.tokens[w][t] = (7 * w + 3 * t * t + t) % vocab;
  }
  batch.counted = at::ones({kWindows, kLength});
  batch.counted[0].narrow(0, 0, 4).zero_();
  batch.counted[1].narrow(0, 7, 2).zero_();
  batch.known = at::ones({kWindows, kLength});
  batch.hidden = fake("hidden", {kWindows, kLength, hidden}) * 10;
  batch.features = fake("features", {kWindows, kLength, 2 * hidden}) * 10;
  batch.progress = 1.0;
  return batch;
}

void expect_near(double found, double expected, const std::string& what) {
  EXPECT_NEAR(found, expected, kTolerance * std::max(1.0, std::abs(expected))) << what;
}

void expect_gradient(const at::Tensor& gradient, const nlohmann::json& golden, const std::string& name) {
  ASSERT_TRUE(gradient.defined()) << name;
  const at::Tensor flat = gradient.flatten();
  const auto& samples = golden.at("samples");
  for (size_t i = 0; i < samples.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) * flat.numel() / std::ssize(samples);
    expect_near(flat[at].item<double>(), samples[i].get<double>(), name + "[" + std::to_string(at) + "]");
  }
  const at::Tensor probe = fake("probe." + name, {flat.numel()});
  const double mixed = flat.to(at::kDouble).dot(probe.to(at::kDouble)).item<double>();
  expect_near(mixed, golden.at("mixed").get<double>(), name);
}

// `arguments` are options of the recipe's own.
void expect_golden(HeadRecipe recipe, const std::vector<std::string>& arguments, const std::string& name = {},
                   double hard = 0.0) {
  const std::string root = OUTRIDER_SOURCE_DIR;
  CLI::App command;
  recipe.add_options(command);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  command.parse(reversed);
  auto target = FrozenTarget::open(root + "/tests/data/models/llama_tied", 1);
  ASSERT_TRUE(target.ok()) << target.error().message;
  const int64_t vocab = (*target)->config().vocab_size;
  std::vector<int64_t> counts(static_cast<size_t>(vocab), 0);
  for (size_t id = 0; id < counts.size(); id += 3) counts[id] = 1;
  HeadOptions options;
  options.products = at::kFloat;
  options.context = kLength;
  options.hard_share = hard;
  auto head =
      recipe.make({.target = **target, .options = options, .token_counts = counts, .device = at::kCPU});
  ASSERT_TRUE(head.ok()) << head.error().message;
  const NamedTensors parameters = (*head)->parameters();
  {
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : parameters) at::Tensor(tensor).copy_(fake(name, tensor.sizes().vec()));
  }
  HeadBatch batch = small_batch((*target)->config().hidden_size, vocab);
  batch.likeliest =
      likeliest_tokens(batch.hidden.flatten(0, 1), (*target)->output_head()).view(batch.tokens.sizes());
  const HeadLoss loss = (*head)->loss(batch);
  loss.loss.backward();
  std::ifstream file(root + "/tests/data/heads/training.json");
  const nlohmann::json golden = nlohmann::json::parse(file).at(name.empty() ? recipe.command : name);
  expect_near(loss.loss.item<double>(), golden.at("loss").get<double>(), "loss");
  const nlohmann::json& gradients = golden.at("gradients");
  ASSERT_EQ(parameters.size(), gradients.size());
  for (const auto& [name, tensor] : parameters) {
    ASSERT_TRUE(gradients.contains(name)) << name;
    expect_gradient(tensor.grad(), gradients.at(name), name);
  }
}

TEST(HeadLoss, Eagle3IsThatOfPyTorch) {
  expect_golden(eagle3_recipe(), {"--taps", "0,2", "--draft-vocab", "96", "--unroll", "3"});
}

TEST(HeadLoss, MtpIsThatOfPyTorch) { expect_golden(mtp_recipe(), {"--unroll", "3"}); }

TEST(HeadLoss, EagleIsThatOfPyTorch) { expect_golden(eagle_recipe(), {"--noise", "0"}); }

TEST(HeadLoss, ADraftModelsIsThatOfPyTorch) {
  for (const std::string divergence : {"forward", "reverse"}) {
    SCOPED_TRACE(divergence);
    expect_golden(draft_recipe(),
                  {"--hidden", "64", "--layers", "2", "--heads", "2", "--kv-heads", "1", "--ffn", "96",
                   "--divergence", divergence},
                  "draft, " + divergence, /*hard=*/0.25);
  }
}

TEST(HeadLoss, MedusaIsThatOfPyTorch) { expect_golden(medusa_recipe(), {"--heads", "3"}); }

}  // namespace
}  // namespace outrider::training
