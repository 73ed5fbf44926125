// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "training/core/row_kernels.h"
#include "training/core/tensor_ops.h"

namespace outrider::training {
namespace {

constexpr int64_t kGrainRows = 64;
// Rows with weight gradients that one task sums. The number is fixed, so that the result does not depend on
// the number of threads.
constexpr int64_t kGradientRows = 512;
constexpr int64_t kGrainElements = 1 << 16;

const uint16_t* half_data(const at::Tensor& tensor) {
  return reinterpret_cast<const uint16_t*>(tensor.data_ptr<at::BFloat16>());
}
uint16_t* mutable_half_data(const at::Tensor& tensor) {
  return reinterpret_cast<uint16_t*>(tensor.data_ptr<at::BFloat16>());
}
float* float_data(const at::Tensor& tensor) { return tensor.data_ptr<float>(); }

at::TensorOptions half_options(const at::Tensor& like) { return like.options().dtype(at::kBFloat16); }
at::TensorOptions float_options(const at::Tensor& like) { return like.options().dtype(at::kFloat); }

NormResult residual_norm(const at::Tensor& x_in, const at::Tensor& delta_in, const at::Tensor& weight,
                         double eps) {
  const at::Tensor x = x_in.contiguous(), delta = delta_in.contiguous();
  const int64_t rows = x.size(0), width = x.size(1);
  NormResult result{at::empty_like(x), at::empty({rows, 1}, float_options(x)),
                    at::empty({rows, width}, half_options(x))};
  const rows::ResidualNorm op{
      float_data(x),           half_data(delta),       float_data(weight),       width,
      static_cast<float>(eps), float_data(result.sum), float_data(result.scale), mutable_half_data(result.y)};
  at::parallel_for(0, rows, kGrainRows,
                   [&](int64_t first, int64_t last) { rows::residual_norm(op, first, last); });
  return result;
}

NormGradient residual_norm_gradient(const NormResult& forward, const at::Tensor& weight,
                                    const at::Tensor& sum_gradient_in, const at::Tensor& y_gradient_in) {
  const at::Tensor sum_gradient = sum_gradient_in.contiguous(), y_gradient = y_gradient_in.contiguous();
  const int64_t rows = forward.sum.size(0), width = forward.sum.size(1);
  const int64_t parts = (rows + kGradientRows - 1) / kGradientRows;
  NormGradient result{at::empty_like(forward.sum), at::empty({rows, width}, half_options(weight)), {}};
  const at::Tensor weight_parts = at::zeros({parts, width}, weight.options());
  const rows::ResidualNormGradient op{float_data(forward.sum), float_data(forward.scale),
                                      float_data(weight),      float_data(sum_gradient),
                                      half_data(y_gradient),   width,
                                      float_data(result.x),    mutable_half_data(result.delta)};
  at::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      rows::residual_norm_gradient(op, part * kGradientRows, std::min(rows, (part + 1) * kGradientRows),
                                   float_data(weight_parts) + part * width);
    }
  });
  result.weight = weight_parts.sum(0);
  return result;
}

at::Tensor rotate(const at::Tensor& x_in, const at::Tensor& cos, const at::Tensor& sin, bool inverse) {
  const bool dense_heads = x_in.stride(3) == 1 && x_in.stride(2) == x_in.size(3) &&
                           x_in.stride(0) == x_in.size(1) * x_in.stride(1);
  const at::Tensor x = dense_heads ? x_in : x_in.contiguous();
  at::Tensor y = at::empty(x.sizes(), x.options());
  const rows::Rotation op{half_data(x),        x.stride(1),     x.size(2),       x.size(3),
                          x.size(1),           float_data(cos), float_data(sin), inverse ? -1.0f : 1.0f,
                          mutable_half_data(y)};
  at::parallel_for(0, x.size(0) * x.size(1), kGrainRows,
                   [&](int64_t first, int64_t last) { rows::rotate(op, first, last); });
  return y;
}

at::Tensor swiglu(const at::Tensor& gate_up) {
  const int64_t rows = gate_up.size(0), width = gate_up.size(1) / 2;
  at::Tensor y = at::empty({rows, width}, gate_up.options());
  at::parallel_for(0, rows, kGrainRows, [&](int64_t first, int64_t last) {
    rows::swiglu(half_data(gate_up), width, mutable_half_data(y), first, last);
  });
  return y;
}

at::Tensor swiglu_gradient(const at::Tensor& gate_up, const at::Tensor& y_gradient_in) {
  const at::Tensor y_gradient = y_gradient_in.contiguous();
  const int64_t rows = gate_up.size(0), width = gate_up.size(1) / 2;
  at::Tensor gradient = at::empty_like(gate_up);
  at::parallel_for(0, rows, kGrainRows, [&](int64_t first, int64_t last) {
    rows::swiglu_gradient(half_data(gate_up), half_data(y_gradient), width, mutable_half_data(gradient),
                          first, last);
  });
  return gradient;
}

rows::CausalSoftmax causal_op(const at::Tensor& scores, const CausalShape& shape) {
  return {mutable_half_data(scores), scores.size(2), shape.period, shape.first,
          static_cast<float>(shape.scale)};
}

// Rows are counted over all sequences; the period divides the number of rows of a sequence.
at::Tensor causal_softmax(at::Tensor scores, const CausalShape& shape) {
  scores = scores.contiguous();
  const rows::CausalSoftmax op = causal_op(scores, shape);
  at::parallel_for(0, scores.size(0) * scores.size(1), kGrainRows,
                   [&](int64_t first, int64_t last) { rows::causal_softmax(op, first, last); });
  return scores;
}

at::Tensor causal_softmax_gradient(at::Tensor distribution_gradient, const at::Tensor& distribution,
                                   const CausalShape& shape) {
  distribution_gradient = distribution_gradient.contiguous();
  const rows::CausalSoftmax op = causal_op(distribution_gradient, shape);
  at::parallel_for(0, distribution.size(0) * distribution.size(1), kGrainRows,
                   [&](int64_t first, int64_t last) {
                     rows::causal_softmax_gradient(op, half_data(distribution), first, last);
                   });
  return distribution_gradient;
}

LossRows cross_entropy(at::Tensor logits, const at::Tensor& targets) {
  logits = logits.contiguous();
  const at::Tensor loss = at::empty({logits.size(0)}, float_options(logits));
  const int64_t vocab = logits.size(1);
  at::parallel_for(0, logits.size(0), kGrainRows, [&](int64_t first, int64_t last) {
    rows::cross_entropy(mutable_half_data(logits), targets.data_ptr<int64_t>(), vocab, float_data(loss),
                        first, last);
  });
  return {loss, {}, logits};
}

LossRows distillation(at::Tensor logits, const at::Tensor& teacher_in, double hard) {
  logits = logits.contiguous();
  const at::Tensor teacher = teacher_in.contiguous();
  const at::Tensor loss = at::empty({logits.size(0)}, float_options(logits)), agree = at::empty_like(loss);
  const rows::Distillation op{mutable_half_data(logits), half_data(teacher), logits.size(1),
                              static_cast<float>(hard),  float_data(loss),   float_data(agree)};
  at::parallel_for(0, logits.size(0), kGrainRows,
                   [&](int64_t first, int64_t last) { rows::distillation(op, first, last); });
  return {loss, agree, logits};
}

void adamw(at::Tensor parameter, const at::Tensor& gradient_in, at::Tensor first_moment,
           at::Tensor second_moment, const AdamWStep& step) {
  const at::Tensor gradient = gradient_in.contiguous();
  const rows::AdamWUpdate op{float_data(parameter),
                             float_data(gradient),
                             float_data(first_moment),
                             float_data(second_moment),
                             static_cast<float>(step.beta1),
                             static_cast<float>(step.beta2),
                             static_cast<float>(step.epsilon),
                             static_cast<float>(step.gradient_scale),
                             static_cast<float>(step.decay),
                             static_cast<float>(step.step_size),
                             static_cast<float>(step.second_factor)};
  at::parallel_for(0, parameter.numel(), kGrainElements,
                   [&](int64_t first, int64_t last) { rows::adamw(op, first, last); });
}

}  // namespace

const TensorOps kCpuOps = {
    residual_norm,  residual_norm_gradient,  rotate,        swiglu,       swiglu_gradient,
    causal_softmax, causal_softmax_gradient, cross_entropy, distillation, adamw};

}  // namespace outrider::training
