// SPDX-License-Identifier: Apache-2.0
#include "training/core/optimizer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

namespace outrider::training {
namespace {

TEST(OptimizerTest, AnOrthogonalizedMatrixHasSingularValuesNearOne) {
  at::manual_seed(3);
  for (const auto& [rows, columns] : {std::pair{24, 80}, {80, 24}, {48, 48}}) {
    const at::Tensor update = at::randn({rows, columns});
    const at::Tensor made = orthogonalized(update, at::kFloat);
    const auto [u, values, v] = at::svd(made);
    EXPECT_GT(values.min().item<double>(), 0.3) << rows << " x " << columns;
    EXPECT_LT(values.max().item<double>(), 1.3) << rows << " x " << columns;
    // It has the singular vectors of the update: their product with it is positive definite.
    const auto [left, given, right] = at::svd(update);
    const at::Tensor in_its_axes = left.t().matmul(made).matmul(right);
    EXPECT_LT((in_its_axes - in_its_axes.diag().diag()).abs().max().item<double>(), 1e-4);
    EXPECT_GT(in_its_axes.diag().min().item<double>(), 0.3);
  }
}

// The mean squared error of a matrix that learns another one, after some steps.
double error_after(int steps, bool is_muon, double* norm_of_update = nullptr) {
  at::manual_seed(4);
  const at::Tensor wanted = at::randn({32, 48});
  const at::Tensor weight = at::zeros({32, 48}).requires_grad_(true);
  const at::Tensor bias = at::zeros({32}).requires_grad_(true);
  Optimizer optimizer({{"weight", weight}, {"bias", bias}}, {.weight_decay = 0.0, .is_muon = is_muon});
  double error = 0.0;
  for (int step = 0; step < steps; ++step) {
    const at::Tensor loss = (weight + bias.unsqueeze(1) - wanted).square().mean();
    loss.backward();
    error = loss.item<double>();
    optimizer.step(0.02);
    if (step == 0 && norm_of_update != nullptr)
      *norm_of_update = std::sqrt(weight.detach().square().mean().item<double>());
  }
  EXPECT_EQ(optimizer.steps_taken(), steps);
  return error;
}

TEST(OptimizerTest, BothRulesLearn) {
  EXPECT_LT(error_after(300, false), 0.1 * error_after(1, false));
  EXPECT_LT(error_after(300, true), 0.1 * error_after(1, true));
}

// The scale of Muon's updates: a root mean square of 0.2 times the rate, however large the matrix.
TEST(OptimizerTest, MuonUpdatesAreAsLargeAsAdamWs) {
  double size = 0.0;
  error_after(1, true, &size);
  EXPECT_NEAR(size, 0.2 * 0.02, 0.3 * 0.2 * 0.02);
}

TEST(OptimizerTest, TokenMatricesAndNormsKeepBothMoments) {
  const at::Tensor hidden = at::zeros({8, 16}), tokens = at::zeros({96, 16}), norm = at::zeros({16});
  Optimizer optimizer({{"hidden", hidden}, {"lm_head", tokens}, {"norm", norm}}, {.is_muon = true});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : optimizer.state()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"first.hidden", "first.lm_head", "second.lm_head", "first.norm",
                                             "second.norm"}));
}

TEST(OptimizerTest, ANormThatIsNotFiniteChangesNothing) {
  const at::Tensor weight = at::ones({4, 4}).requires_grad_(true);
  Optimizer optimizer({{"weight", weight}}, {.is_muon = true});
  weight.mutable_grad() = at::full({4, 4}, std::nan(""));
  EXPECT_FALSE(std::isfinite(optimizer.step(0.1)));
  EXPECT_TRUE(weight.detach().equal(at::ones({4, 4})));
  EXPECT_EQ(optimizer.steps_taken(), 0);
}

}  // namespace
}  // namespace outrider::training
