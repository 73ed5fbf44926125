// SPDX-License-Identifier: Apache-2.0
#include "training/core/adamw.h"

#include <ATen/ATen.h>

#include <cmath>

#include "training/core/tensor_ops.h"

namespace outrider::training {

AdamW::AdamW(NamedTensors parameters, const AdamWOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  for (const auto& [name, tensor] : parameters_) {
    first_.push_back(at::zeros_like(tensor.detach()));
    second_.push_back(at::zeros_like(tensor.detach()));
  }
}

double AdamW::gradient_norm() const {
  std::vector<at::Tensor> norms;
  for (const auto& [name, tensor] : parameters_) norms.push_back(tensor.grad().norm());
  return at::stack(norms).norm().item<double>();
}

double AdamW::step(double learning_rate) {
  const at::NoGradGuard no_grad;
  const double norm = gradient_norm();
  if (std::isfinite(norm)) {
    ++steps_;
    const double clip = std::min(1.0, options_.max_gradient_norm / (norm + 1e-6));
    const double correction1 = 1.0 - std::pow(options_.beta1, static_cast<double>(steps_));
    const double correction2 = 1.0 - std::pow(options_.beta2, static_cast<double>(steps_));
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor& parameter = parameters_[i].second;
      ops_for(parameter).adamw(
          parameter, parameter.grad(), first_[i], second_[i],
          {.beta1 = options_.beta1,
           .beta2 = options_.beta2,
           .epsilon = options_.epsilon,
           .gradient_scale = clip,
           .decay = parameter.dim() > 1 ? 1.0 - learning_rate * options_.weight_decay : 1.0,
           .step_size = learning_rate / correction1,
           .second_factor = 1.0 / correction2});
    }
  }
  for (auto& [name, tensor] : parameters_) tensor.mutable_grad().reset();
  return norm;
}

NamedTensors AdamW::state() const {
  NamedTensors state;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    state.emplace_back("first." + parameters_[i].first, first_[i]);
    state.emplace_back("second." + parameters_[i].first, second_[i]);
  }
  return state;
}

}  // namespace outrider::training
