// SPDX-License-Identifier: Apache-2.0
// The exponential of the CPU's tables (kernels/simd/row_ops.h).
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

// Below this, exp() is 0.
inline constexpr float kLowestExponent = -87.0F;

// exp(x) = series * 2^n, for x between kLowestExponent and 90.
struct ExpFactors {
  Floats series;
  Ints n;
};

SIMT_PART ExpFactors exp_factors(Floats x) {
  const Ints n = round_int(mul_rn(x, Floats(1.44269504F)));
  const Floats steps = to_float(n);
  const Floats coarse = fma_rn(steps, Floats(-0.693359375F), x);
  const Floats r = fma_rn(steps, Floats(2.12194440e-4F), coarse);
  Floats series(1.0F / 5040);
  series = fma_rn(series, r, Floats(1.0F / 720));
  series = fma_rn(series, r, Floats(1.0F / 120));
  series = fma_rn(series, r, Floats(1.0F / 24));
  series = fma_rn(series, r, Floats(1.0F / 6));
  series = fma_rn(series, r, Floats(0.5F));
  series = fma_rn(series, r, Floats(1.0F));
  series = fma_rn(series, r, Floats(1.0F));
  return {series, n};
}

SIMT Floats power_of_two(Ints n) { return from_bits((n + Ints(127)) << Ints(23)); }

// Infinite above 89, NaN for NaN.
SIMT_PART Floats exp_of(Floats unbounded) {
  const Floats x = min_of(Floats(90.0F), max_of(Floats(kLowestExponent), unbounded));
  const ExpFactors factors = exp_factors(x);
  const Ints half = factors.n >> Ints(1);
  const Floats scaled = mul_rn(mul_rn(factors.series, power_of_two(half)), power_of_two(factors.n - half));
  return select(unbounded < Floats(kLowestExponent), Floats(0.0F), scaled);
}

// exp(x) of x <= 0, with the same bits.
SIMT_PART Floats exp_of_negative(Floats unbounded) {
  const ExpFactors factors = exp_factors(max_of(Floats(kLowestExponent), unbounded));
  return select(unbounded < Floats(kLowestExponent), Floats(0.0F),
                mul_rn(factors.series, power_of_two(factors.n)));
}

// cap * tanh(x * scale / cap)
SIMT_PART Floats softcap_of(Floats x, float scale, float cap) {
  const float factor = div_rn(mul_rn(2.0F, scale), cap);
  const Floats power = exp_of(mul_rn(x, Floats(factor)));
  const Floats rest = div_rn(Floats(mul_rn(2.0F, cap)), add_rn(power, Floats(1.0F)));
  return sub_rn(Floats(cap), rest);
}

}  // namespace outrider::simt
