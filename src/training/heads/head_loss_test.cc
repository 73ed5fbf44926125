// SPDX-License-Identifier: Apache-2.0
// Compares loss and gradients of every kind with an independent implementation in PyTorch
// (tools/head_goldens/training.py), in f32; weights and states are functions of their names.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "draft_heads/fake_head.h"
#include "training/core/decoder_layers.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/draft_head.h"
#include "training/heads/draft_model.h"
#include "training/heads/eagle3_head.h"
#include "training/heads/eagle_head.h"
#include "training/heads/medusa_head.h"
#include "training/heads/mtp_head.h"
#include "training/heads/pard_model.h"
#include "training/heads/vocabulary/loss_vocabulary.h"

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

// A head over the small target, with weights that are functions of their names.
class SmallHead {
 public:
  // `arguments` are options of the recipe's own.
  SmallHead(HeadRecipe recipe, const std::vector<std::string>& arguments, double hard = 0.0) {
    CLI::App command;
    recipe.add_options(command);
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    command.parse(reversed);
    auto target = FrozenTarget::open(std::string(OUTRIDER_SOURCE_DIR) + "/tests/data/models/llama_tied", 1);
    EXPECT_TRUE(target.ok()) << target.error().message;
    target_ = std::move(*target);
    std::vector<int64_t> counts(static_cast<size_t>(target_->config().vocab_size), 0);
    for (size_t id = 0; id < counts.size(); id += 3) counts[id] = 1;
    HeadOptions options;
    options.products = at::kFloat;
    options.context = kLength;
    options.hard_share = hard;
    auto head =
        recipe.make({.target = *target_, .options = options, .token_counts = counts, .device = at::kCPU});
    EXPECT_TRUE(head.ok()) << head.error().message;
    head_ = std::move(*head);
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : head_->parameters())
      at::Tensor(tensor).copy_(fake(name, tensor.sizes().vec()));
  }

  HeadBatch batch() const {
    HeadBatch batch = small_batch(target_->config().hidden_size, target_->config().vocab_size);
    batch.likeliest =
        likeliest_tokens(batch.hidden.flatten(0, 1), target_->output_head()).view(batch.tokens.sizes());
    return batch;
  }
  const DraftHead& head() const { return *head_; }

 private:
  std::unique_ptr<FrozenTarget> target_;
  std::unique_ptr<DraftHead> head_;
};

void expect_golden(const HeadRecipe& recipe, const std::vector<std::string>& arguments,
                   const std::string& name = {}, double hard = 0.0) {
  const SmallHead small(recipe, arguments, hard);
  const NamedTensors parameters = small.head().parameters();
  const HeadLoss loss = small.head().loss(small.batch());
  loss.loss.backward();
  std::ifstream file(std::string(OUTRIDER_SOURCE_DIR) + "/tests/data/heads/training.json");
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

TEST(HeadLoss, Eagle31IsThatOfPyTorch) {
  expect_golden(eagle3_recipe(),
                {"--taps", "0,2", "--draft-vocab", "96", "--unroll", "3", "--fc-norm", "--norm-output"},
                "eagle3.1");
}

TEST(HeadLoss, LossesOfTheAcceptanceRateAreThoseOfPyTorch) {
  for (const std::string loss : {"tv", "nla", "lk"}) {
    SCOPED_TRACE(loss);
    expect_golden(eagle3_recipe(), {"--taps", "0,2", "--draft-vocab", "96", "--unroll", "3", "--loss", loss},
                  "eagle3, " + loss);
  }
}

TEST(HeadLoss, PEagleIsThatOfPyTorch) {
  expect_golden(peagle_recipe(),
                {"--taps", "0,2", "--draft-vocab", "96", "--unroll", "3", "--mask-token", "7"});
}

TEST(HeadLoss, MtpIsThatOfPyTorch) { expect_golden(mtp_recipe(), {"--unroll", "3"}); }

// Compares the losses of samples of `compared` tokens with the loss over all draft tokens.
void expect_sampled_loss(const HeadRecipe& recipe, std::vector<std::string> arguments,
                         const std::string& compared) {
  arguments.insert(arguments.end(), {"--loss-vocab", "0"});
  const SmallHead whole(recipe, arguments);
  arguments.back() = compared;
  const SmallHead sampled(recipe, arguments);
  const double expected = whole.head().loss(whole.batch()).loss.item<double>();
  HeadBatch batch = sampled.batch();
  double mean = 0.0, largest = 0.0;
  constexpr int kDraws = 40;
  for (int draw = 0; draw < kDraws; ++draw) {
    batch.seed = static_cast<uint64_t>(draw);
    const auto loss = sampled.head().loss(batch).loss.item<double>();
    mean += loss / kDraws;
    largest = std::max(largest, std::abs(loss - expected));
  }
  EXPECT_NEAR(mean, expected, 0.1 * expected);
  EXPECT_GT(largest, 1e-3 * expected) << "nothing was sampled";
  batch.measures = true;
  HeadBatch measured = whole.batch();
  measured.measures = true;
  EXPECT_EQ(sampled.head().loss(batch).loss.item<double>(), whole.head().loss(measured).loss.item<double>());
}

// The tokens that are not drawn matter least, as in a real text.
TEST(HeadLoss, ASampleOfTheVocabularyEstimatesTheLossOfTheWhole) {
  expect_sampled_loss(mtp_recipe(), {}, "240");
  expect_sampled_loss(mtp_recipe(), {"--draft-vocab", "200"}, "150");
  expect_sampled_loss(eagle3_recipe(), {"--taps", "0,2", "--draft-vocab", "200"}, "150");
}

// A row is learned where the target's choice can be drafted, whatever is sampled.
TEST(HeadLoss, ChoicesOfTheTargetAreAmongTheComparedTokens) {
  const at::Tensor draft_tokens = at::arange(0, 200, 2, at::kLong);
  const LossVocabulary vocabulary(std::vector<int64_t>(256, 1), draft_tokens, 20);
  HeadBatch batch = small_batch(8, 256);
  batch.likeliest = at::full_like(batch.tokens, 199);  // no draft token
  batch.likeliest[1].narrow(0, 2, 2).fill_(198);       // the last one, which counts least
  const at::Tensor lessons = vocabulary.lessons(batch);
  EXPECT_EQ(lessons.sum().item<double>(), 2.0);
  for (batch.seed = 0; batch.seed < 20; ++batch.seed) {
    const LossTokens tokens = vocabulary.compared(batch, at::empty({0}));
    ASSERT_EQ(tokens.ids.numel(), 20);
    EXPECT_TRUE(tokens.ids.equal(draft_tokens.index_select(0, tokens.rows)));
    const at::Tensor place = tokens.ids.eq(198).nonzero();
    ASSERT_EQ(place.numel(), 1);
    EXPECT_EQ(tokens.bias[place.item<int64_t>()].item<double>(), 0.0) << "stands for itself alone";
    EXPECT_NEAR(tokens.bias.exp().sum().item<double>(), 100.0, 1e-3) << "stand for all draft tokens";
  }
}

TEST(HeadLoss, UnrolledStepsGrowInTheFirstHalfOfTheTraining) {
  const SmallHead small(mtp_recipe(), {"--unroll", "4", "--growth", "0.5"});
  HeadBatch batch = small.batch();
  for (const auto& [progress, steps] :
       {std::pair{0.0, 1u}, {0.12, 1u}, {0.13, 2u}, {0.3, 3u}, {0.5, 4u}, {1.0, 4u}}) {
    batch.progress = progress;
    EXPECT_EQ(small.head().loss(batch).depths.size(), steps) << progress;
  }
  batch.progress = 0.0;
  batch.measures = true;
  EXPECT_GE(small.head().loss(batch).depths.size(), 4u);
}

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

TEST(HeadLoss, PardIsThatOfPyTorch) {
  expect_golden(pard_recipe(), {"--hidden", "64", "--layers", "2", "--heads", "2", "--kv-heads", "1", "--ffn",
                                "96", "--levels", "3", "--mask-token", "7"});
}

TEST(HeadLoss, MedusaIsThatOfPyTorch) { expect_golden(medusa_recipe(), {"--heads", "3"}); }

}  // namespace
}  // namespace outrider::training
