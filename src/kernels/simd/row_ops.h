// SPDX-License-Identifier: Apache-2.0
// Exponential, normalisation and activation. Tails run through the same vector instructions as bodies, so a
// number's place in its row never changes its bits.
#pragma once

#include "kernels/isa_ops.h"
#include "kernels/simd/sum_chains.h"

namespace outrider::simd {

// Below this, exp() is 0: numbers soon are subnormal, and every operation on them takes the processor a
// hundred cycles.
inline constexpr float kLowestExponent = -87;

// exp(x) = series * 2^n, for x between kLowestExponent and 90.
template <typename V>
struct ExpFactors {
  typename V::Floats series;
  typename V::Ints n;
};

template <typename V>
ExpFactors<V> exp_factors(typename V::Floats x) {
  using Floats = typename V::Floats;
  const auto n = V::round(V::mul(x, V::all(1.44269504F)));
  // r = x - n ln 2, ln 2 in two parts; the upper one has few enough bits for exact products.
  const Floats steps = V::to_floats(n);
  const Floats coarse = V::multiply_add(steps, V::all(-0.693359375F), x);
  const Floats r = V::multiply_add(steps, V::all(2.12194440e-4F), coarse);
  constexpr float kInverseFactorials[] = {1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F};
  Floats series = V::all(1.0F / 5040);
  for (const float coefficient : kInverseFactorials) series = V::multiply_add(series, r, V::all(coefficient));
  return {series, n};
}

template <typename V>
typename V::Floats power_of_two(typename V::Ints exponent) {
  return V::from_bits(V::shift_left(V::add(exponent, 127), 23));
}

// Within 2 ulp; infinite above 89, NaN for NaN.
template <typename V>
typename V::Floats exp(typename V::Floats unbounded) {
  // This order of operands lets NaN pass.
  const auto x = V::min(V::all(90), V::max(V::all(kLowestExponent), unbounded));
  const auto [series, n] = exp_factors<V>(x);
  // 2^n in two factors, because n leaves the range of one exponent.
  const auto half = V::halve(n);
  const auto scaled = V::mul(V::mul(series, power_of_two<V>(half)), power_of_two<V>(V::sub(n, half)));
  return V::zero_below(kLowestExponent, unbounded, scaled);
}

// exp(x) of x <= 0, with the same bits: 2^n is one factor there.
template <typename V>
typename V::Floats exp_of_negative(typename V::Floats unbounded) {
  const auto [series, n] = exp_factors<V>(V::max(V::all(kLowestExponent), unbounded));
  return V::zero_below(kLowestExponent, unbounded, V::mul(series, power_of_two<V>(n)));
}

// x = cap * tanh(x * scale / cap) = cap - 2 cap / (exp(2 x scale / cap) + 1), within 2e-7 * cap; NaN for NaN.
template <typename V>
void softcap(float* x, int64_t count, float scale, float cap) {
  for (int64_t i = 0; i < count; i += V::kLanes) {
    const int64_t left = count - i < V::kLanes ? count - i : V::kLanes;
    const auto power = exp<V>(V::mul(V::load_first(x + i, left), V::all(2 * scale / cap)));
    const auto rest = V::div(V::all(2 * cap), V::add(power, V::all(1)));
    V::store_first(x + i, V::sub(V::all(cap), rest), left);
  }
}

template <typename V>
void softcap(const SoftcapArgs& args, Range items) {
  softcap<V>(args.x + items.begin, items.end - items.begin, 1, args.cap);
}

template <typename V>
float sum_of_squares(const float* x, int64_t dim) {
  constexpr int kSums = 4;  // of kSumChains chains each
  constexpr int kParts = kChainVectors<V>;
  typename V::Floats sums[kSums * kParts];
  for (auto& sum : sums) sum = V::all(0);
  int64_t i = 0;
  for (; i + kSums * kSumChains <= dim; i += kSums * kSumChains) {
    for (int s = 0; s < kSums * kParts; ++s) {
      const auto v = V::load(x + i + s * V::kLanes);
      sums[s] = V::multiply_add(v, v, sums[s]);
    }
  }
  for (; i < dim; i += kSumChains) {
    for (int part = 0; part < kParts; ++part) {
      const auto v = load_left<V>(x + i + part * V::kLanes, dim - i - part * V::kLanes);
      sums[part] = V::multiply_add(v, v, sums[part]);
    }
  }
  typename V::Floats chains[kParts];
  for (int part = 0; part < kParts; ++part)
    chains[part] = V::add(V::add(sums[part], sums[kParts + part]),
                          V::add(sums[2 * kParts + part], sums[3 * kParts + part]));
  return sum_chains<V, kChainVectors<V>>(chains);
}

template <typename V>
void rms_norm(const NormArgs& args, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* x = args.x + r * args.dim;
    float* y = args.y + r * args.dim;
    const float mean = sum_of_squares<V>(x, args.dim) / static_cast<float>(args.dim);
    const auto scale = V::all(1.0F / __builtin_sqrtf(mean + args.epsilon));
    for (int64_t i = 0; i < args.dim; i += V::kLanes) {
      const int64_t count = args.dim - i < V::kLanes ? args.dim - i : V::kLanes;
      const auto scaled = V::mul(V::load_first(x + i, count), scale);
      V::store_first(y + i, V::mul(scaled, V::load_first(args.weight + i, count)), count);
    }
  }
}

template <typename V>
float sum_of(const float* x, int64_t dim) {
  typename V::Floats chains[kChainVectors<V>];
  for (auto& chain : chains) chain = V::all(0);
  for (int64_t i = 0; i < dim; i += kSumChains) {
    for (int part = 0; part < kChainVectors<V>; ++part)
      chains[part] = V::add(chains[part], load_left<V>(x + i + part * V::kLanes, dim - i - part * V::kLanes));
  }
  return sum_chains<V, kChainVectors<V>>(chains);
}

template <typename V>
void layer_norm(const NormArgs& args, Range rows) {
  const auto dim = static_cast<float>(args.dim);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* x = args.x + r * args.dim;
    float* y = args.y + r * args.dim;
    const auto mean = V::all(sum_of<V>(x, args.dim) / dim);
    for (int64_t i = 0; i < args.dim; i += V::kLanes) {
      const int64_t count = args.dim - i < V::kLanes ? args.dim - i : V::kLanes;
      V::store_first(y + i, V::sub(V::load_first(x + i, count), mean), count);
    }
    const float variance = sum_of_squares<V>(y, args.dim) / dim;
    const auto scale = V::all(1.0F / __builtin_sqrtf(variance + args.epsilon));
    for (int64_t i = 0; i < args.dim; i += V::kLanes) {
      const int64_t count = args.dim - i < V::kLanes ? args.dim - i : V::kLanes;
      const auto weighted =
          V::mul(V::mul(V::load_first(y + i, count), scale), V::load_first(args.weight + i, count));
      const auto bias = args.bias == nullptr ? V::all(0) : V::load_first(args.bias + i, count);
      V::store_first(y + i, V::add(weighted, bias), count);
    }
  }
}

// Products are rounded before they are added, as in the models' own code.
template <typename V>
void rope(const RopeArgs& args, Range rows) {
  const int64_t half = args.rotated / 2;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* cosines = args.rotations + r * args.rotated;
    float* x = args.x + r * args.heads * args.head_dim;
    for (int64_t head = 0; head < args.heads; ++head, x += args.head_dim) {
      for (int64_t i = 0; i < half; i += V::kLanes) {
        const int64_t count = half - i < V::kLanes ? half - i : V::kLanes;
        const auto cosine = V::load_first(cosines + i, count);
        const auto sine = V::load_first(cosines + half + i, count);
        const auto a = V::load_first(x + i, count);
        const auto b = V::load_first(x + half + i, count);
        V::store_first(x + i, V::sub(V::mul(a, cosine), V::mul(b, sine)), count);
        V::store_first(x + half + i, V::add(V::mul(b, cosine), V::mul(a, sine)), count);
      }
    }
  }
}

// Half of erfc(x), x >= 0, as t * exp(P(t) - x^2) with t = 1 / (1 + x / 2): within 1e-6 of its value up to x
// = 2 and within 2e-5 beyond. P was fitted at the roots of a Chebyshev polynomial over t from 1 / 6.2 to 1.
template <typename V>
typename V::Floats half_erfc(typename V::Floats x) {
  const auto t = V::div(V::all(1), V::multiply_add(x, V::all(0.5F), V::all(1)));
  constexpr float kCoefficients[] = {-0.697874188F,  1.19684815F,   -0.749624848F,
                                     -0.0361684784F, -0.022138983F, 0.042548392F,
                                     0.384982437F,   0.998825133F,  -1.26545739F};
  auto series = V::all(0.14805983F);
  for (const float coefficient : kCoefficients) series = V::multiply_add(series, t, V::all(coefficient));
  const auto exponent = V::sub(series, V::mul(x, x));
  return V::mul(V::mul(t, V::all(0.5F)), exp<V>(exponent));
}

template <typename V>
struct Silu {
  static typename V::Floats apply(typename V::Floats x) {
    return V::div(x, V::add(V::all(1), exp<V>(V::sub(V::all(0), x))));
  }
};

template <typename V>
struct Gelu {
  static typename V::Floats apply(typename V::Floats x) {
    const auto tail = half_erfc<V>(V::mul(V::absolute(x), V::all(0.707106781F)));
    // The share of the normal distribution below x: `tail` on the left, 1 - tail on the right.
    const auto right = V::zero_below(0, x, V::sub(V::all(1), V::add(tail, tail)));
    return V::mul(x, V::add(right, tail));
  }
};

// (1 + tanh(u)) / 2 is 1 / (1 + exp(-2u)).
template <typename V>
struct GeluTanh {
  static typename V::Floats apply(typename V::Floats x) {
    const auto cubic = V::multiply_add(V::mul(V::mul(x, x), x), V::all(0.044715F), x);
    const auto exponent = V::mul(cubic, V::all(-1.59576912F));  // -2 sqrt(2 / pi)
    return V::div(x, V::add(V::all(1), exp<V>(exponent)));
  }
};

template <typename V>
struct Relu {
  static typename V::Floats apply(typename V::Floats x) { return V::max(V::all(0), x); }  // NaN stays NaN
};

// NaN stays NaN in both.
template <typename V>
struct ClampedSwiglu {
  static typename V::Floats apply(typename V::Floats x) {
    const auto gate = V::min(V::all(kSwigluLimit), x);
    return V::div(gate, V::add(V::all(1), exp<V>(V::mul(gate, V::all(-kSwigluAlpha)))));
  }
  static typename V::Floats factor(typename V::Floats up) {
    return V::add(V::min(V::all(kSwigluLimit), V::max(V::all(-kSwigluLimit), up)), V::all(1));
  }
};

template <typename V, typename Function>
typename V::Floats gated(typename V::Floats y, typename V::Floats up) {
  if constexpr (requires { Function::factor(up); }) return V::mul(y, Function::factor(up));
  return V::mul(y, up);
}

template <typename V, typename Function>
void activate_with(const ActivationArgs& args, Range items) {
  const int64_t dim = args.dim;
  while (items.begin < items.end) {
    const int64_t row = items.begin / dim;
    const int64_t row_end = (row + 1) * dim < items.end ? (row + 1) * dim : items.end;
    const float* x = args.x + row * (args.is_gated ? 2 * dim : dim) + items.begin % dim;
    for (; items.begin < row_end; items.begin += V::kLanes, x += V::kLanes) {
      const int64_t count = row_end - items.begin < V::kLanes ? row_end - items.begin : V::kLanes;
      auto y = Function::apply(V::load_first(x, count));
      if (args.is_gated) y = gated<V, Function>(y, V::load_first(x + dim, count));
      V::store_first(args.y + items.begin, y, count);
    }
    items.begin = row_end;
  }
}

template <typename V>
void activate(const ActivationArgs& args, Range items) {
  switch (args.activation) {
    case Activation::kSilu:
      return activate_with<V, Silu<V>>(args, items);
    case Activation::kGelu:
      return activate_with<V, Gelu<V>>(args, items);
    case Activation::kGeluTanh:
      return activate_with<V, GeluTanh<V>>(args, items);
    case Activation::kRelu:
      return activate_with<V, Relu<V>>(args, items);
    case Activation::kClampedSwiglu:
      return activate_with<V, ClampedSwiglu<V>>(args, items);
  }
}

}  // namespace outrider::simd
