// SPDX-License-Identifier: Apache-2.0
#include "training/core/row_kernels.h"

#include <bit>
#include <cmath>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define OUTRIDER_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define OUTRIDER_CLONES
#endif
#define OUTRIDER_INLINE inline __attribute__((always_inline))

namespace outrider::training::rows {
namespace {

OUTRIDER_INLINE float widen(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

// Rounds to nearest, ties to even; NaN payloads are not kept.
OUTRIDER_INLINE uint16_t narrow(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// exp(x) with x clamped to [-60, 60] and a relative error below 2e-7. Unlike std::exp it vectorizes. Wider
// limits would allow denormal gradients, each of which costs a hundred cycles.
OUTRIDER_INLINE float fast_exp(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  x = x < -60.0f ? -60.0f : x;
  x = x > 60.0f ? 60.0f : x;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const auto exponent =
      static_cast<uint32_t>(std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound) + 127) << 23;
  return p * std::bit_cast<float>(exponent);
}

OUTRIDER_INLINE float row_max(const uint16_t* row, int64_t n) {
  float high = -3.0e38f;
#pragma omp simd reduction(max : high)
  for (int64_t i = 0; i < n; ++i) high = widen(row[i]) > high ? widen(row[i]) : high;
  return high;
}

// sum over i of exp(scale * (row[i] - high))
OUTRIDER_INLINE float exp_sum(const uint16_t* row, int64_t n, float high, float scale) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += fast_exp(scale * (widen(row[i]) - high));
  return sum;
}

// Lowest index of the highest value, which is `high`.
OUTRIDER_INLINE int64_t index_of(const uint16_t* row, int64_t n, float high) {
  for (int64_t i = 0; i < n; ++i) {
    if (widen(row[i]) == high) return i;
  }
  return 0;
}

}  // namespace

OUTRIDER_CLONES void residual_norm(const ResidualNorm& op, int64_t first, int64_t last) {
  const int64_t width = op.width;
  for (int64_t row = first; row < last; ++row) {
    const float* x = op.x + row * width;
    const uint16_t* delta = op.delta + row * width;
    float* sum = op.sum + row * width;
    uint16_t* y = op.y + row * width;
    float square = 0.0f;
#pragma omp simd reduction(+ : square)
    for (int64_t i = 0; i < width; ++i) {
      const float value = x[i] + widen(delta[i]);
      sum[i] = value;
      square += value * value;
    }
    const float scale = 1.0f / std::sqrt(square / static_cast<float>(width) + op.eps);
    op.scale[row] = scale;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) y[i] = narrow(sum[i] * scale * op.weight[i]);
  }
}

OUTRIDER_CLONES void residual_norm_gradient(const ResidualNormGradient& op, int64_t first, int64_t last,
                                            float* weight_gradient) {
  const int64_t width = op.width;
  for (int64_t row = first; row < last; ++row) {
    const float* sum = op.sum + row * width;
    const float* sum_gradient = op.sum_gradient + row * width;
    const uint16_t* y_gradient = op.y_gradient + row * width;
    float* x_gradient = op.x_gradient + row * width;
    uint16_t* delta_gradient = op.delta_gradient + row * width;
    const float scale = op.scale[row];
    float projection = 0.0f;
#pragma omp simd reduction(+ : projection)
    for (int64_t i = 0; i < width; ++i) {
      const float product = widen(y_gradient[i]) * sum[i] * scale;
      weight_gradient[i] += product;
      projection += product * op.weight[i];
    }
    projection *= scale / static_cast<float>(width);
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float through_norm = scale * (widen(y_gradient[i]) * op.weight[i] - sum[i] * projection);
      const float total = sum_gradient[i] + through_norm;
      x_gradient[i] = total;
      delta_gradient[i] = narrow(total);
    }
  }
}

OUTRIDER_CLONES void rotate(const Rotation& op, int64_t first, int64_t last) {
  const int64_t half = op.head_dim / 2;
  for (int64_t token = first; token < last; ++token) {
    const float* cos = op.cos + token % op.period * half;
    const float* sin = op.sin + token % op.period * half;
    for (int64_t head = 0; head < op.heads; ++head) {
      const uint16_t* x = op.x + token * op.token_stride + head * op.head_dim;
      uint16_t* y = op.y + (token * op.heads + head) * op.head_dim;
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const float a = widen(x[i]), b = widen(x[i + half]), s = op.sign * sin[i];
        y[i] = narrow(a * cos[i] - b * s);
        y[i + half] = narrow(b * cos[i] + a * s);
      }
    }
  }
}

OUTRIDER_CLONES void swiglu(const uint16_t* gate_up, int64_t width, uint16_t* y, int64_t first,
                            int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const uint16_t* gate = gate_up + row * 2 * width;
    const uint16_t* up = gate + width;
    uint16_t* out = y + row * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float g = widen(gate[i]);
      out[i] = narrow(g / (1.0f + fast_exp(-g)) * widen(up[i]));
    }
  }
}

OUTRIDER_CLONES void swiglu_gradient(const uint16_t* gate_up, const uint16_t* y_gradient, int64_t width,
                                     uint16_t* gradient, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const uint16_t* gate = gate_up + row * 2 * width;
    const uint16_t* up = gate + width;
    const uint16_t* upstream = y_gradient + row * width;
    uint16_t* gate_gradient = gradient + row * 2 * width;
    uint16_t* up_gradient = gate_gradient + width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float g = widen(gate[i]), dy = widen(upstream[i]);
      const float sigmoid = 1.0f / (1.0f + fast_exp(-g));
      up_gradient[i] = narrow(dy * g * sigmoid);
      gate_gradient[i] = narrow(dy * widen(up[i]) * sigmoid * (1.0f + g * (1.0f - sigmoid)));
    }
  }
}

OUTRIDER_CLONES void causal_softmax(const CausalSoftmax& op, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    uint16_t* scores = op.scores + row * op.columns;
    const int64_t seen = op.hidden_before + row % op.period + 1;
    const float high = row_max(scores, seen);
    const float factor = 1.0f / exp_sum(scores, seen, high, op.scale);
#pragma omp simd
    for (int64_t i = 0; i < seen; ++i)
      scores[i] = narrow(factor * fast_exp(op.scale * (widen(scores[i]) - high)));
    for (int64_t i = seen; i < op.columns; ++i) scores[i] = 0;
  }
}

OUTRIDER_CLONES void causal_softmax_gradient(const CausalSoftmax& op, const uint16_t* distribution,
                                             int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    uint16_t* gradient = op.scores + row * op.columns;
    const uint16_t* p = distribution + row * op.columns;
    const int64_t seen = op.hidden_before + row % op.period + 1;
    float projection = 0.0f;
#pragma omp simd reduction(+ : projection)
    for (int64_t i = 0; i < seen; ++i) projection += widen(gradient[i]) * widen(p[i]);
#pragma omp simd
    for (int64_t i = 0; i < seen; ++i) {
      gradient[i] = narrow(op.scale * widen(p[i]) * (widen(gradient[i]) - projection));
    }
    for (int64_t i = seen; i < op.columns; ++i) gradient[i] = 0;
  }
}

OUTRIDER_CLONES void cross_entropy(uint16_t* logits, const int64_t* targets, int64_t vocab, float* loss,
                                   int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    uint16_t* x = logits + row * vocab;
    const int64_t target = targets[row];
    const float high = row_max(x, vocab);
    const float total = exp_sum(x, vocab, high, 1.0f), factor = 1.0f / total;
    const float target_logit = widen(x[target]) - high;
    loss[row] = std::log(total) - target_logit;
#pragma omp simd
    for (int64_t i = 0; i < vocab; ++i) x[i] = narrow(factor * fast_exp(widen(x[i]) - high));
    x[target] = narrow(factor * fast_exp(target_logit) - 1.0f);
  }
}

OUTRIDER_CLONES void distillation(const Distillation& op, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    uint16_t* x = op.logits + row * op.vocab;
    const uint16_t* t = op.teacher + row * op.vocab;
    const float x_high = row_max(x, op.vocab), t_high = row_max(t, op.vocab);
    const float x_total = exp_sum(x, op.vocab, x_high, 1.0f), t_total = exp_sum(t, op.vocab, t_high, 1.0f);
    const int64_t top = index_of(t, op.vocab, t_high);
    op.agree[row] = index_of(x, op.vocab, x_high) == top ? 1.0f : 0.0f;

    const float soft = 1.0f - op.hard;
    const float x_log = std::log(x_total) + x_high, t_log = std::log(t_total) + t_high;
    const float top_distribution = soft / t_total + op.hard, top_student = widen(x[top]) - x_log;
    // The sum of distribution * (log distribution - log student); the term of the most probable token, which
    // also has the hard share, is replaced after the loop.
    float loss = 0.0f;
    const float log_soft = op.hard < 1.0f ? std::log(soft) : 0.0f;
#pragma omp simd reduction(+ : loss)
    for (int64_t i = 0; i < op.vocab; ++i) {
      const float t_logp = widen(t[i]) - t_log, x_logp = widen(x[i]) - x_log;
      const float distribution = soft * fast_exp(t_logp);
      loss += distribution * (log_soft + t_logp - x_logp);
      x[i] = narrow(fast_exp(x_logp) - distribution);
    }
    const float counted = soft / t_total;
    loss -= counted * (log_soft - std::log(t_total) - top_student);
    loss += top_distribution * (std::log(top_distribution) - top_student);
    op.loss[row] = loss;
    x[top] = narrow(fast_exp(top_student) - top_distribution);
  }
}

OUTRIDER_CLONES void adamw(const AdamWUpdate& op, int64_t first, int64_t last) {
#pragma omp simd
  for (int64_t i = first; i < last; ++i) {
    const float gradient = op.gradient[i] * op.gradient_scale;
    const float m = op.beta1 * op.first_moment[i] + (1.0f - op.beta1) * gradient;
    const float v = op.beta2 * op.second_moment[i] + (1.0f - op.beta2) * gradient * gradient;
    op.first_moment[i] = m;
    op.second_moment[i] = v;
    op.parameter[i] =
        op.decay * op.parameter[i] - op.step_size * m / (std::sqrt(v * op.second_factor) + op.epsilon);
  }
}

}  // namespace outrider::training::rows
