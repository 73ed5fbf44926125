// SPDX-License-Identifier: Apache-2.0
// The element-wise work of training on a CPU, fused row by row. Matrix products run at hundreds of GFLOP/s,
// so the operations between them decide the speed; separate library operations would pass over memory several
// times as often.
//
// bf16 values are uint16_t holding the upper half of a float. Rows are dense unless a stride is given.
#pragma once

#include <cstdint>

namespace outrider::training::rows {

// x += delta; scale[row] = 1 / sqrt(mean(x^2) + eps); y = x * scale * weight.
struct ResidualNorm {
  const float* x;
  const uint16_t* delta;
  const float* weight;
  int64_t width;
  float eps;
  float* sum;    // x + delta
  float* scale;  // one per row
  uint16_t* y;
};
void residual_norm(const ResidualNorm& op, int64_t first, int64_t last);

// x_gradient is the gradient through the norm plus sum_gradient, which reaches the sum directly.
struct ResidualNormGradient {
  const float* sum;
  const float* scale;
  const float* weight;
  const float* sum_gradient;
  const uint16_t* y_gradient;
  int64_t width;
  float* x_gradient;
  uint16_t* delta_gradient;
};
// Adds to `weight_gradient` [width].
void residual_norm_gradient(const ResidualNormGradient& op, int64_t first, int64_t last,
                            float* weight_gradient);

// Rotates the `heads` heads of each token by its position (RoPE); token t has position t % period. A `sign`
// of -1 rotates back.
struct Rotation {
  const uint16_t* x;
  int64_t token_stride;
  int64_t heads;
  int64_t head_dim;
  int64_t period;
  const float* cos;  // [period, head_dim / 2]
  const float* sin;
  float sign;
  uint16_t* y;  // dense
};
void rotate(const Rotation& op, int64_t first, int64_t last);

// gate_up: [rows, 2 * width]; y = silu(gate) * up.
void swiglu(const uint16_t* gate_up, int64_t width, uint16_t* y, int64_t first, int64_t last);
void swiglu_gradient(const uint16_t* gate_up, const uint16_t* y_gradient, int64_t width, uint16_t* gradient,
                     int64_t first, int64_t last);

// Softmax of scale * scores in place over the first seen(row) = hidden_before + row % period + 1 columns;
// zero beyond.
struct CausalSoftmax {
  uint16_t* scores;
  int64_t columns;
  int64_t period;
  int64_t hidden_before;  // columns before the first query's own
  float scale;
};
void causal_softmax(const CausalSoftmax& op, int64_t first, int64_t last);
// op.scores holds the gradient of the distribution, which becomes the gradient of the scores.
void causal_softmax_gradient(const CausalSoftmax& op, const uint16_t* distribution, int64_t first,
                             int64_t last);

// loss[row] = -log softmax(logits)[target]; logits become the loss's gradient.
void cross_entropy(uint16_t* logits, const int64_t* targets, int64_t vocab, float* loss, int64_t first,
                   int64_t last);

// The distribution to learn is (1 - hard) softmax(teacher) + hard one-hot(argmax teacher). loss[row] =
// KL(distribution || student); agree[row] = 1 where both have the same most probable token; logits become the
// loss's gradient.
struct Distillation {
  uint16_t* logits;
  const uint16_t* teacher;
  int64_t vocab;
  float hard;
  float* loss;
  float* agree;
};
void distillation(const Distillation& op, int64_t first, int64_t last);

struct AdamWUpdate {
  float* parameter;
  const float* gradient;
  float* first_moment;
  float* second_moment;
  float beta1, beta2, epsilon;
  float gradient_scale;
  float decay;          // the parameter is multiplied by this first
  float step_size;      // learning rate / bias correction of the first moment
  float second_factor;  // 1 / bias correction of the second moment
};
void adamw(const AdamWUpdate& op, int64_t first, int64_t last);

}  // namespace outrider::training::rows
