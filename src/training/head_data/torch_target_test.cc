// SPDX-License-Identifier: Apache-2.0
// Compares the target in libtorch with the serving kernels for every family and format.
#include "training/head_data/torch_target.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "training/core/target_form.h"
#include "training/head_data/frozen_target.h"

namespace outrider::training {
namespace {

constexpr int64_t kLongest = 40;  // tokens; longer than the sliding window of the model that has one

std::vector<std::vector<TokenId>> texts(int64_t vocab) {
  std::vector<std::vector<TokenId>> texts(3);
  for (size_t i = 0; i < texts.size(); ++i) {
    const int64_t length = kLongest - 13 * static_cast<int64_t>(i);
    for (int64_t t = 0; t < length; ++t)
      texts[i].push_back(static_cast<TokenId>((7 * t * t + 5 * t + 11 * static_cast<int64_t>(i)) % vocab));
  }
  return texts;
}

// The root mean square difference, relative to the expected values.
double distance(const at::Tensor& found, const at::Tensor& expected) {
  EXPECT_EQ(found.sizes(), expected.sizes());
  return ((found.cpu() - expected).norm() / expected.norm()).item<double>();
}

class TorchTargetTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    // A table of f32 arithmetic: others round the inputs of bf16 weights to bf16.
    auto target = FrozenTarget::open(
        std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests/data/models" / GetParam(), 1, "reference");
    ASSERT_TRUE(target.ok()) << target.error().message;
    target_ = std::move(*target);
    const int64_t layers = target_->config().layer_count;
    ASSERT_TRUE(target_->want({.taps = {0, 1, layers}, .keys_values = true}).ok());
    texts_ = texts(target_->config().vocab_size);
    states_ = run();
  }

  std::vector<TargetStates> run() {
    const std::vector<std::span<const TokenId>> windows(texts_.begin(), texts_.end());
    return *target_->run(windows);
  }

  // Keys and values are bf16: a flip of the last bit is far larger than the rounding of products.
  void expect_states(at::Device device, at::ScalarType products, double tolerance) {
    target_->move_to(device, products);
    const std::vector<TargetStates> moved = run();
    ASSERT_EQ(moved.size(), states_.size());
    for (size_t i = 0; i < moved.size(); ++i) {
      EXPECT_EQ(moved[i].hidden.device(), device);
      EXPECT_LT(distance(moved[i].hidden, states_[i].hidden), tolerance);
      EXPECT_LT(distance(moved[i].features, states_[i].features), tolerance);
      EXPECT_LT(distance(moved[i].keys_values, states_[i].keys_values), tolerance);
    }
  }

  std::unique_ptr<FrozenTarget> target_;
  std::vector<std::vector<TokenId>> texts_;
  std::vector<TargetStates> states_;  // computed by the kernels
};

TEST_P(TorchTargetTest, StatesAreThoseOfTheKernels) {
  expect_states(at::kCPU, at::kFloat, 2e-3);
  expect_states(at::kCPU, at::kBFloat16, 0.06);
}

TEST_P(TorchTargetTest, StatesOnAGpuAreThoseOfTheKernels) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU, or a libtorch without CUDA";
  expect_states(at::Device(at::kCUDA, 0), at::kFloat, 2e-3);
  expect_states(at::Device(at::kCUDA, 0), at::kBFloat16, 0.06);
}

// Each has one part that the trainer's network does not have.
TEST(LlamaForm, IsNoneOfAnotherFamily) {
  for (const char* model :
       {"glm", "ministral3", "llama_rope_dynamic", "granite", "olmo2", "gemma2", "gpt2", "falcon"}) {
    const auto file = open_model(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests/data/models" / model);
    ASSERT_TRUE(file.ok()) << model;
    EXPECT_FALSE(has_llama_form(file->config)) << model;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TorchTargetTest,
                         testing::Values("llama", "llama.gguf", "llama_tied", "llama_rope_linear",
                                         "llama_rope_llama3", "mistral", "qwen2", "qwen3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace outrider::training
