// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include <limits>

#include "training/core/tensor_ops.h"

namespace outrider::training {
namespace {

NormResult residual_norm(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& weight, double eps) {
  const at::Tensor sum = x + delta;
  const at::Tensor scale = (sum.square().mean(-1, /*keepdim=*/true) + eps).rsqrt();
  return {sum, scale, (sum * scale * weight).to(delta.scalar_type())};
}

NormGradient residual_norm_gradient(const NormResult& forward, const at::Tensor& weight,
                                    const at::Tensor& sum_gradient, const at::Tensor& y_gradient) {
  const at::Tensor gradient = y_gradient.to(at::kFloat);
  const at::Tensor normed = forward.sum * forward.scale;
  const at::Tensor product = gradient * normed;
  const at::Tensor projection = (product * weight).mean(-1, /*keepdim=*/true);
  const at::Tensor x = sum_gradient + forward.scale * (gradient * weight - normed * projection);
  return {x, x.to(y_gradient.scalar_type()), product.sum(0)};
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool inverse) {
  const int64_t half = x.size(-1) / 2;
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor first = wide.narrow(-1, 0, half), second = wide.narrow(-1, half, half);
  const at::Tensor signed_sin = inverse ? -sin : sin;
  return at::cat({first * cos - second * signed_sin, second * cos + first * signed_sin}, -1)
      .to(x.scalar_type());
}

at::Tensor swiglu(const at::Tensor& gate_up) {
  const std::vector<at::Tensor> parts = gate_up.to(at::kFloat).chunk(2, -1);
  return (at::silu(parts[0]) * parts[1]).to(gate_up.scalar_type());
}

at::Tensor swiglu_gradient(const at::Tensor& gate_up, const at::Tensor& y_gradient) {
  const std::vector<at::Tensor> parts = gate_up.to(at::kFloat).chunk(2, -1);
  const at::Tensor upstream = y_gradient.to(at::kFloat), sigmoid = at::sigmoid(parts[0]);
  const at::Tensor gate = upstream * parts[1] * sigmoid * (1.0 + parts[0] * (1.0 - sigmoid));
  return at::cat({gate, upstream * parts[0] * sigmoid}, -1).to(gate_up.scalar_type());
}

at::Tensor causal_softmax(at::Tensor scores, const CausalShape& shape) {
  const auto index = at::TensorOptions().dtype(at::kLong).device(scores.device());
  const at::Tensor position = at::arange(scores.size(1), index).remainder(shape.period).add(shape.first);
  const at::Tensor unseen = at::arange(scores.size(2), index).unsqueeze(0).gt(position.unsqueeze(1));
  return at::softmax((scores.to(at::kFloat) * shape.scale)
                         .masked_fill(unseen, -std::numeric_limits<double>::infinity()),
                     -1)
      .to(scores.scalar_type());
}

at::Tensor causal_softmax_gradient(at::Tensor distribution_gradient, const at::Tensor& distribution,
                                   const CausalShape& shape) {
  const at::Tensor p = distribution.to(at::kFloat), upstream = distribution_gradient.to(at::kFloat);
  return (shape.scale * p * (upstream - (p * upstream).sum(-1, /*keepdim=*/true)))
      .to(distribution.scalar_type());
}

LossRows cross_entropy(at::Tensor logits, const at::Tensor& targets) {
  const at::Tensor log_distribution = at::log_softmax(logits.to(at::kFloat), -1),
                   target = targets.unsqueeze(1);
  const at::Tensor gradient =
      log_distribution.exp().scatter_add(1, target, at::full_like(target, -1.0, log_distribution.options()));
  return {log_distribution.gather(1, target).squeeze(1).neg(), {}, gradient.to(logits.scalar_type())};
}

LossRows distillation(at::Tensor logits, const at::Tensor& teacher, double hard) {
  const at::Tensor top = teacher.argmax(-1, /*keepdim=*/true);
  at::Tensor distribution = at::softmax(teacher.to(at::kFloat), -1).mul_(1.0 - hard);
  distribution.scatter_add_(1, top, at::full_like(top, hard, distribution.options()));
  const at::Tensor student = at::log_softmax(logits.to(at::kFloat), -1);
  const at::Tensor agree = logits.argmax(-1, /*keepdim=*/true).eq(top).squeeze(1).to(at::kFloat);
  return {(at::xlogy(distribution, distribution) - distribution * student).sum(-1), agree,
          (student.exp() - distribution).to(logits.scalar_type())};
}

void adamw(at::Tensor parameter, const at::Tensor& gradient, at::Tensor first_moment,
           at::Tensor second_moment, const AdamWStep& step) {
  first_moment.mul_(step.beta1).add_(gradient, (1.0 - step.beta1) * step.gradient_scale);
  second_moment.mul_(step.beta2)
      .addcmul_(gradient, gradient, (1.0 - step.beta2) * step.gradient_scale * step.gradient_scale);
  const at::Tensor denominator = (second_moment * step.second_factor).sqrt_().add_(step.epsilon);
  parameter.mul_(step.decay).addcdiv_(first_moment, denominator, -step.step_size);
}

}  // namespace

const TensorOps kComposedOps = {
    residual_norm,  residual_norm_gradient,  rotate,        swiglu,       swiglu_gradient,
    causal_softmax, causal_softmax_gradient, cross_entropy, distillation, adamw};

}  // namespace outrider::training
