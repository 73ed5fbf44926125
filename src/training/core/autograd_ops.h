// SPDX-License-Identifier: Apache-2.0
// Differentiable operations of a Llama network with hand-written gradients. Activations are bf16 (or f32 in
// small runs and tests) except the residual stream, which is always f32.
#pragma once

#include <torch/types.h>

namespace outrider::training {

struct NormedResidual {
  at::Tensor sum;     // f32 [rows, hidden]: x + delta
  at::Tensor normed;  // bf16 [rows, hidden]: RMSNorm of the sum
};

// x: f32, delta: bf16, both [rows, hidden]; weight: f32 [hidden].
NormedResidual residual_norm(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& weight,
                             double eps);

// Rotates by position (RoPE): x bf16 [batch, n, heads, head_dim]; cos and sin f32 [n, 1, head_dim / 2].
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

// gate_up: bf16 [rows, 2 * ffn]. Returns silu(gate) * up.
at::Tensor swiglu(const at::Tensor& gate_up);

// Causal grouped-query attention. q: bf16 [batch, n, heads, head_dim]; k and v: bf16 [batch, n, kv_heads,
// head_dim]. Returns bf16 [batch, n, heads, head_dim].
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

// Mean cross-entropy of `targets` (int64 [rows]) under softmax(hidden head^T); hidden bf16 [rows, size],
// head bf16 [vocab, size]. The logits are computed for a slice of rows at a time.
at::Tensor cross_entropy(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets);

struct DistillationLoss {
  at::Tensor loss;   // mean KL divergence from the distribution to learn; differentiable in hidden and head
  double agreement;  // share of rows with the teacher's most probable token
};

// The distribution to learn is (1 - hard) teacher + hard one-hot(argmax teacher). `teacher_hidden` and
// `teacher_head` have the shapes cross_entropy() asks for; no gradient reaches them.
DistillationLoss distillation_loss(const at::Tensor& hidden, const at::Tensor& head,
                                   const at::Tensor& teacher_hidden, const at::Tensor& teacher_head,
                                   double hard);

}  // namespace outrider::training
