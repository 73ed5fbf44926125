// SPDX-License-Identifier: Apache-2.0
#include "training/core/optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "training/core/tensor_ops.h"

namespace outrider::training {
namespace {

// A matrix between hidden units. Rows and columns that stand for tokens are left to AdamW, as Muon's
// authors advise; they have far more rows than columns.
bool is_hidden_matrix(const at::Tensor& parameter) {
  if (parameter.dim() != 2) return false;
  const int64_t rows = parameter.size(0), columns = parameter.size(1);
  return std::min(rows, columns) > 1 && rows < 6 * columns;
}

}  // namespace

at::Tensor orthogonalized(const at::Tensor& update, at::ScalarType products) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
  constexpr int kIterations = 5;
  const bool is_tall = update.size(0) > update.size(1);
  at::Tensor x = (update / (update.norm() + 1e-12)).to(products);
  if (is_tall) x = x.t();
  x = x.contiguous();
  for (int i = 0; i < kIterations; ++i) {
    const at::Tensor gram = at::matmul(x, x.t());
    const at::Tensor polynomial = kB * gram + kC * at::matmul(gram, gram);
    x = kA * x + at::matmul(polynomial, x);
  }
  if (is_tall) x = x.t();
  return x.to(at::kFloat);
}

Optimizer::Optimizer(NamedTensors parameters, const OptimizerOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  for (const auto& [name, tensor] : parameters_) {
    first_.push_back(at::zeros_like(tensor.detach()));
    const bool is_muon = options_.is_muon && is_hidden_matrix(tensor);
    second_.push_back(is_muon ? at::Tensor() : at::zeros_like(tensor.detach()));
  }
}

double Optimizer::gradient_norm() const {
  std::vector<at::Tensor> norms;
  for (const auto& [name, tensor] : parameters_) norms.push_back(tensor.grad().norm());
  return at::stack(norms).norm().item<double>();
}

void Optimizer::adamw(size_t index, double learning_rate, double clip) {
  const at::Tensor& parameter = parameters_[index].second;
  const auto steps = static_cast<double>(steps_);
  ops_for(parameter).adamw(parameter, parameter.grad(), first_[index], second_[index],
                           {.beta1 = options_.beta1,
                            .beta2 = options_.beta2,
                            .epsilon = options_.epsilon,
                            .gradient_scale = clip,
                            .decay = parameter.dim() > 1 ? 1.0 - learning_rate * options_.weight_decay : 1.0,
                            .step_size = learning_rate / (1.0 - std::pow(options_.beta1, steps)),
                            .second_factor = 1.0 / (1.0 - std::pow(options_.beta2, steps))});
}

// The scale gives an update the root mean square of AdamW's, so that one learning rate serves both.
void Optimizer::muon(size_t index, double learning_rate, double clip) {
  constexpr double kRootMeanSquare = 0.2;
  const at::Tensor& parameter = parameters_[index].second;
  at::Tensor& momentum = first_[index];
  const at::Tensor gradient = parameter.grad() * clip;
  momentum.mul_(options_.muon_momentum).add_(gradient);
  const at::Tensor ahead = gradient + options_.muon_momentum * momentum;  // Nesterov's
  const auto longer = static_cast<double>(std::max(parameter.size(0), parameter.size(1)));
  parameter.mul_(1.0 - learning_rate * options_.weight_decay);
  parameter.add_(orthogonalized(ahead, options_.products),
                 -learning_rate * kRootMeanSquare * std::sqrt(longer));
}

double Optimizer::step(double learning_rate) {
  const at::NoGradGuard no_grad;
  const double norm = gradient_norm();
  if (std::isfinite(norm)) {
    ++steps_;
    const double clip = std::min(1.0, options_.max_gradient_norm / (norm + 1e-6));
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (second_[i].defined()) {
        adamw(i, learning_rate, clip);
      } else {
        muon(i, learning_rate, clip);
      }
    }
  }
  for (auto& [name, tensor] : parameters_) tensor.mutable_grad().reset();
  return norm;
}

NamedTensors Optimizer::state() const {
  NamedTensors state;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    state.emplace_back("first." + parameters_[i].first, first_[i]);
    if (second_[i].defined()) state.emplace_back("second." + parameters_[i].first, second_[i]);
  }
  return state;
}

}  // namespace outrider::training
