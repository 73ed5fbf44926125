// SPDX-License-Identifier: Apache-2.0
#include "training/lm/llama.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <utility>

#include "training/core/safetensors_file.h"
#include "training/core/test_files.h"

namespace outrider::training {
namespace {

constexpr double kHalfTolerance = 1.0 / 64;  // two bf16 roundings of values near 1

void expect_close(const at::Tensor& actual, const at::Tensor& expected, double tolerance) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  const at::Tensor a = actual.to(at::kFloat), b = expected.to(at::kFloat);
  const double error = ((a - b).abs() / (1.0 + b.abs())).max().item<double>();
  EXPECT_LE(error, tolerance);
}

class LlamaTest : public testing::Test {
 protected:
  LlamaConfig config_{.vocab_size = 50,
                      .hidden_size = 64,
                      .layers = 2,
                      .heads = 2,
                      .kv_heads = 1,
                      .ffn_size = 64,
                      .max_context = 32};
};

TEST_F(LlamaTest, DecodingWithACacheMatchesTheWholeForwardPass) {
  const Llama model = Llama::initialized(config_, 3, at::kCPU);
  const at::NoGradGuard no_grad;
  const at::Tensor tokens = at::randint(50, {3, 12}, at::kLong);
  for (const auto& [type, tolerance] :
       {std::pair(at::kBFloat16, kHalfTolerance), std::pair(at::kFloat, 1e-5)}) {
    const LlamaWeights weights = model.compute_weights(type);
    const at::Tensor whole = model.forward(weights, tokens).view({3, 12, 64});
    KvCache cache = model.make_cache(3, 12, type);
    expect_close(model.extend(weights, tokens.narrow(1, 0, 8), cache), whole.select(1, 7), tolerance);
    for (int64_t i = 8; i < 12; ++i) {
      expect_close(model.extend(weights, tokens.narrow(1, i, 1), cache), whole.select(1, i), 2 * tolerance);
    }
  }
}

TEST_F(LlamaTest, SafetensorsRoundTripKeepsEveryBit) {
  const TestFiles files;
  const Llama model = Llama::initialized(config_, 3, at::kCPU);
  ASSERT_TRUE(write_safetensors(files.path("m.safetensors"), model.huggingface_tensors()).ok());
  const auto read = read_safetensors(files.path("m.safetensors"));
  ASSERT_TRUE(read.ok()) << read.error().message;
  const auto copy = Llama::from_tensors(config_, *read, at::kCPU);
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  const NamedTensors expected = model.parameters(), actual = copy->parameters();
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].first, expected[i].first);
    EXPECT_TRUE(at::equal(actual[i].second, expected[i].second)) << actual[i].first;
  }
  NamedTensors incomplete = *read;
  incomplete.pop_back();
  EXPECT_FALSE(Llama::from_tensors(config_, incomplete, at::kCPU).ok());
}

}  // namespace
}  // namespace outrider::training
