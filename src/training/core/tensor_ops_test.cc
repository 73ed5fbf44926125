// SPDX-License-Identifier: Apache-2.0
#include "training/core/tensor_ops.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "training/core/autograd_ops.h"
#include "training/core/device.h"
#include "training/core/safetensors_file.h"
#include "training/core/test_files.h"

namespace outrider::training {
namespace {

constexpr double kHalfTolerance = 1.0 / 64;  // two bf16 roundings of values near 1

at::Tensor random_half(at::IntArrayRef sizes) { return at::randn(sizes).to(at::kBFloat16); }

void expect_close(const at::Tensor& actual, const at::Tensor& expected, double tolerance) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  const at::Tensor a = actual.to(at::kFloat), b = expected.to(at::kFloat);
  const double error = ((a - b).abs() / (1.0 + b.abs())).max().item<double>();
  EXPECT_LE(error, tolerance);
}

class TensorOpsTest : public testing::Test {
 protected:
  void SetUp() override { at::manual_seed(1); }
};

TEST_F(TensorOpsTest, ResidualNorm) {
  const at::Tensor x = at::randn({70, 96}), delta = random_half({70, 96}), weight = at::randn({96});
  const NormResult fused = kCpuOps.residual_norm(x, delta, weight, 1e-5);
  const NormResult composed = kComposedOps.residual_norm(x, delta, weight, 1e-5);
  expect_close(fused.sum, composed.sum, 1e-6);
  expect_close(fused.y, composed.y, kHalfTolerance);

  const at::Tensor sum_gradient = at::randn({70, 96}), y_gradient = random_half({70, 96});
  const NormGradient a = kCpuOps.residual_norm_gradient(fused, weight, sum_gradient, y_gradient);
  const NormGradient b = kComposedOps.residual_norm_gradient(composed, weight, sum_gradient, y_gradient);
  expect_close(a.x, b.x, 1e-5);
  expect_close(a.delta, b.delta, kHalfTolerance);
  expect_close(a.weight, b.weight, 1e-4);
}

TEST_F(TensorOpsTest, RotateAndItsInverse) {
  const at::Tensor angles = at::randn({9, 1, 16});
  const at::Tensor x = random_half({3, 9, 6, 32}).narrow(2, 1, 4);
  const at::Tensor y = kCpuOps.rotate(x, angles.cos(), angles.sin(), false);
  expect_close(y, kComposedOps.rotate(x, angles.cos(), angles.sin(), false), kHalfTolerance);
  expect_close(kCpuOps.rotate(y, angles.cos(), angles.sin(), true), x, kHalfTolerance);
}

TEST_F(TensorOpsTest, SwiGlu) {
  const at::Tensor gate_up = random_half({33, 128}) * 4, upstream = random_half({33, 64});
  expect_close(kCpuOps.swiglu(gate_up), kComposedOps.swiglu(gate_up), kHalfTolerance);
  expect_close(kCpuOps.swiglu_gradient(gate_up, upstream), kComposedOps.swiglu_gradient(gate_up, upstream),
               kHalfTolerance);
}

TEST_F(TensorOpsTest, CausalSoftmax) {
  const CausalShape shape{.first = 5, .period = 7, .scale = 0.3};
  const at::Tensor scores = random_half({4, 14, 12}) * 3, upstream = random_half({4, 14, 12});
  const at::Tensor distribution = kComposedOps.causal_softmax(scores, shape);
  expect_close(kCpuOps.causal_softmax(scores.clone(), shape), distribution, kHalfTolerance);
  EXPECT_EQ(distribution[0][0][6].item<float>(), 0.0f);  // the query at position 5 must not see position 6
  expect_close(kCpuOps.causal_softmax_gradient(upstream.clone(), distribution, shape),
               kComposedOps.causal_softmax_gradient(upstream, distribution, shape), kHalfTolerance);
}

TEST_F(TensorOpsTest, CrossEntropy) {
  const at::Tensor logits = random_half({20, 333}) * 5, targets = at::randint(333, {20}, at::kLong);
  const LossRows fused = kCpuOps.cross_entropy(logits.clone(), targets);
  const LossRows composed = kComposedOps.cross_entropy(logits, targets);
  expect_close(fused.loss, composed.loss, 1e-5);
  expect_close(fused.gradient, composed.gradient, kHalfTolerance);
}

TEST_F(TensorOpsTest, Distillation) {
  const at::Tensor logits = random_half({20, 333}) * 3, teacher = random_half({20, 333}) * 3;
  for (const double hard : {0.0, 0.4, 1.0}) {
    const LossRows fused = kCpuOps.distillation(logits.clone(), teacher, hard);
    const LossRows composed = kComposedOps.distillation(logits, teacher, hard);
    expect_close(fused.loss, composed.loss, 1e-4);
    expect_close(fused.gradient, composed.gradient, kHalfTolerance);
    EXPECT_TRUE(at::equal(fused.agree, composed.agree));
  }
  const LossRows same = kCpuOps.distillation(teacher.clone(), teacher, 0.0);
  EXPECT_LE(same.loss.abs().max().item<double>(), 1e-4);
  EXPECT_EQ(same.agree.sum().item<double>(), 20.0);
}

TEST_F(TensorOpsTest, AdamW) {
  const AdamWStep step{.beta1 = 0.9,
                       .beta2 = 0.95,
                       .epsilon = 1e-8,
                       .gradient_scale = 0.5,
                       .decay = 0.99,
                       .step_size = 0.01,
                       .second_factor = 20.0};
  const at::Tensor gradient = at::randn({1000});
  at::Tensor parameter = at::randn({1000}), first = at::randn({1000}), second = at::rand({1000});
  at::Tensor other = parameter.clone(), other_first = first.clone(), other_second = second.clone();
  kCpuOps.adamw(parameter, gradient, first, second, step);
  kComposedOps.adamw(other, gradient, other_first, other_second, step);
  expect_close(parameter, other, 1e-5);
  expect_close(first, other_first, 1e-6);
  expect_close(second, other_second, 1e-6);
}

// Plain attention in f32, without blocks or groups.
at::Tensor plain_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const int64_t group = q.size(2) / k.size(2), n = q.size(1);
  const auto heads_first = [&](const at::Tensor& x, int64_t repeat) {
    return x.repeat_interleave(repeat, 2).transpose(1, 2).to(at::kFloat);
  };
  const at::Tensor scores = at::matmul(heads_first(q, 1), heads_first(k, group).transpose(2, 3)) /
                            std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor future = at::ones({n, n}, at::kBool).triu(1);
  return at::matmul(at::softmax(scores.masked_fill(future, -1e30), -1), heads_first(v, group))
      .transpose(1, 2);
}

// Inputs are of `type`. Gradients sum twice as many products, so they get twice the tolerance.
void expect_plain_attention(at::ScalarType type, double tolerance) {
  constexpr int64_t kLength = 300;  // more than one block of queries
  const auto leaf = [&](at::IntArrayRef sizes) {
    return random_half(sizes).to(type).detach().requires_grad_(true);
  };
  const at::Tensor q = leaf({2, kLength, 4, 32}), k = leaf({2, kLength, 2, 32}),
                   v = leaf({2, kLength, 2, 32});
  const at::Tensor upstream = random_half({2, kLength, 4, 32}).to(type);
  const at::Tensor mixed = causal_attention(q, k, v);
  expect_close(mixed, plain_attention(q, k, v), tolerance);
  mixed.backward(upstream);
  const std::vector<at::Tensor> blocked = {q.grad().clone(), k.grad().clone(), v.grad().clone()};
  for (const at::Tensor& tensor : {q, k, v}) at::Tensor(tensor).mutable_grad().reset();
  plain_attention(q, k, v).backward(upstream.to(at::kFloat));
  expect_close(blocked[0], q.grad(), 2 * tolerance);
  expect_close(blocked[1], k.grad(), 2 * tolerance);
  expect_close(blocked[2], v.grad(), 2 * tolerance);
}

TEST_F(TensorOpsTest, CausalAttentionAndItsGradients) { expect_plain_attention(at::kFloat, 1e-5); }

TEST_F(TensorOpsTest, CausalAttentionAndItsGradientsInBf16) {
  if (product_type("auto", "cpu") != at::kBFloat16)
    GTEST_SKIP() << "no bf16 instructions: libtorch rounds every sum of bf16 products";
  expect_plain_attention(at::kBFloat16, kHalfTolerance);
}

TEST_F(TensorOpsTest, CrossEntropyGradientReachesHiddenAndHead) {
  const at::Tensor hidden = random_half({50, 32}).requires_grad_(true);
  const at::Tensor head = random_half({77, 32}).requires_grad_(true);
  const at::Tensor targets = at::randint(77, {50}, at::kLong);
  const at::Tensor loss = cross_entropy(hidden, head, targets);
  loss.backward();
  const at::Tensor hidden_gradient = hidden.grad().clone(), head_gradient = head.grad().clone();
  const at::Tensor wide_hidden = hidden.detach().to(at::kFloat).requires_grad_(true);
  const at::Tensor wide_head = head.detach().to(at::kFloat).requires_grad_(true);
  const at::Tensor expected =
      at::nll_loss(at::log_softmax(at::matmul(wide_hidden, wide_head.t()), -1), targets);
  expected.backward();
  EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 0.02);
  expect_close(hidden_gradient, wide_hidden.grad(), kHalfTolerance);
  expect_close(head_gradient, wide_head.grad(), kHalfTolerance);
}

TEST(Safetensors, HostileHeadersAreRefused) {
  const TestFiles files;
  const auto file = [&](const std::string& header) {
    const uint64_t size = header.size();
    files.write_bytes("x.safetensors",
                      std::string(reinterpret_cast<const char*>(&size), 8) + header + "12345678");
    return read_safetensors(files.path("x.safetensors"));
  };
  EXPECT_TRUE(file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})").ok());
  EXPECT_FALSE(file(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})").ok());
  EXPECT_FALSE(file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})").ok());
  EXPECT_FALSE(file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})").ok());
  EXPECT_FALSE(file(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})").ok());
  EXPECT_FALSE(
      file(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,8]}})")
          .ok());
  EXPECT_FALSE(file(R"({"a":{"dtype":"F32"}})").ok());
  EXPECT_FALSE(file("{").ok());
}

}  // namespace
}  // namespace outrider::training
