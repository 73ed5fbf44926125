// SPDX-License-Identifier: Apache-2.0
// The operations between the matrix products of training, forward and backward, without autograd. There are
// two tables: kCpuOps runs the fused row kernels over bf16 activations; kComposedOps is made of library
// operations, runs on any device and is the reference in tests. Where bf16 is written below, kComposedOps
// takes f32 as well and returns the type it was given.
#pragma once

#include <torch/types.h>

#include <utility>

namespace outrider::training {

struct NormResult {
  at::Tensor sum;    // x + delta, f32 [rows, width]
  at::Tensor scale;  // f32 [rows, 1]
  at::Tensor y;      // bf16 [rows, width]
};

struct NormGradient {
  at::Tensor x;       // f32 [rows, width]
  at::Tensor delta;   // bf16 [rows, width]: x rounded
  at::Tensor weight;  // f32 [width]
};

// Describes scores of queries against keys, bf16 [sequences, rows, columns]: row r is a query at position
// first + r % period and sees the columns up to its own.
struct CausalShape {
  int64_t first = 0;
  int64_t period = 0;
  double scale = 1.0;
};

struct LossRows {
  at::Tensor loss;      // f32 [rows]
  at::Tensor agree;     // f32 [rows], distillation only: 1 where the most probable tokens are the same
  at::Tensor gradient;  // bf16 [rows, vocab]: gradient of each row's loss with respect to its logits
};

struct AdamWStep {
  double beta1, beta2, epsilon;
  double gradient_scale;
  double decay;          // the parameter is multiplied by this first
  double step_size;      // learning rate / bias correction of the first moment
  double second_factor;  // 1 / bias correction of the second moment
};

struct TensorOps {
  // RMSNorm of x + delta; x f32, delta bf16 [rows, width], weight f32 [width].
  NormResult (*residual_norm)(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& weight,
                              double eps);
  NormGradient (*residual_norm_gradient)(const NormResult& forward, const at::Tensor& weight,
                                         const at::Tensor& sum_gradient, const at::Tensor& y_gradient);
  // x bf16 [batch, n, heads, head_dim], heads and head_dim dense; cos and sin f32 [n, 1, head_dim / 2].
  at::Tensor (*rotate)(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool inverse);
  // gate_up bf16 [rows, 2 * width].
  at::Tensor (*swiglu)(const at::Tensor& gate_up);
  at::Tensor (*swiglu_gradient)(const at::Tensor& gate_up, const at::Tensor& y_gradient);
  // The scores may be overwritten.
  at::Tensor (*causal_softmax)(at::Tensor scores, const CausalShape& shape);
  // Returns the gradient of the unscaled scores; distribution_gradient may be overwritten.
  at::Tensor (*causal_softmax_gradient)(at::Tensor distribution_gradient, const at::Tensor& distribution,
                                        const CausalShape& shape);
  // logits bf16 [rows, vocab], may be overwritten; targets int64 [rows].
  LossRows (*cross_entropy)(at::Tensor logits, const at::Tensor& targets);
  // KL((1 - hard) softmax(teacher) + hard one-hot(argmax teacher) || softmax(logits)); logits may be
  // overwritten.
  LossRows (*distillation)(at::Tensor logits, const at::Tensor& teacher, double hard);
  void (*adamw)(at::Tensor parameter, const at::Tensor& gradient, at::Tensor first_moment,
                at::Tensor second_moment, const AdamWStep& step);
};

extern const TensorOps kCpuOps;
extern const TensorOps kComposedOps;

inline const TensorOps& ops_for(const at::Tensor& tensor) { return tensor.is_cpu() ? kCpuOps : kComposedOps; }
// Chooses by the type as well: f32 activations, for tests and small runs, need the composed operations.
inline const TensorOps& activation_ops(const at::Tensor& activations) {
  return activations.scalar_type() == at::kBFloat16 ? ops_for(activations) : kComposedOps;
}

}  // namespace outrider::training
