// SPDX-License-Identifier: Apache-2.0
// The functions of base/portable_math.h for lanes, with the same bits.
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

SIMT Doubles plus(Doubles a, Doubles b) { return add_rn(a, b); }
SIMT Doubles times(Doubles a, Doubles b) { return mul_rn(a, b); }

// Added to a number below 2^51, it leaves the nearest whole number in the lowest bits.
inline constexpr double kRoundToWhole = 0x1.8p52;
inline constexpr double kLn2High = 0x1.62e42fefa0000p-1, kLn2Low = 0x1.cf79abc9e3b39p-40;

// 2^whole of a whole number to which kRoundToWhole was added.
SIMT Doubles power_of_whole(Doubles shifted) {
  return from_words(Ints(0), (low_word(shifted) + Ints(1023)) << Ints(20));
}

// x = whole * ln 2 + rest
struct ExponentParts {
  Doubles shifted, whole, rest;
};
SIMT ExponentParts exponent_parts(Doubles x) {
  const Doubles shifted = plus(times(x, Doubles(0x1.71547652b82fep+0)), Doubles(kRoundToWhole));
  const Doubles whole = sub_rn(shifted, Doubles(kRoundToWhole));
  const Doubles rest = sub_rn(sub_rn(x, times(whole, Doubles(kLn2High))), times(whole, Doubles(kLn2Low)));
  return {shifted, whole, rest};
}

// a + x * b
SIMT Doubles line(double a, Doubles x, double b) { return plus(Doubles(a), times(x, Doubles(b))); }

// e^x of f32
SIMT_PART Floats portable_exp_of(Floats x) {
  const Floats above = select(x < Floats(-105.0F), Floats(-105.0F), x);
  const Floats bounded = select(above > Floats(89.0F), Floats(89.0F), above);
  const ExponentParts exponent = exponent_parts(to_double(bounded));
  const Doubles rest = exponent.rest, x2 = times(rest, rest), x4 = times(x2, x2);
  const Doubles low = plus(line(1.0 / 2, rest, 1.0 / 6), times(x2, line(1.0 / 24, rest, 1.0 / 120)));
  const Doubles high = plus(line(1.0 / 720, rest, 1.0 / 5040), times(x2, Doubles(1.0 / 40320)));
  const Doubles series = plus(Doubles(1.0), plus(rest, times(x2, plus(low, times(x4, high)))));
  return to_float(times(series, power_of_whole(exponent.shifted)));
}

// 1 / (1 + e^-x)
SIMT Floats portable_sigmoid_of(Floats x) {
  return div_rn(Floats(1.0F), add_rn(Floats(1.0F), portable_exp_of(negated(x))));
}

// e^x of f64
SIMT_PART Doubles portable_exp_of(Doubles x) {
  const Doubles above = select(x < Doubles(-746.0), Doubles(-746.0), x);
  const ExponentParts exponent = exponent_parts(select(above > Doubles(710.0), Doubles(710.0), above));
  const Doubles r = exponent.rest, x2 = times(r, r), x4 = times(x2, x2), x8 = times(x4, x4);
  const Doubles low = plus(line(1.0 / 2, r, 1.0 / 6), times(x2, line(1.0 / 24, r, 1.0 / 120)));
  const Doubles middle = plus(line(1.0 / 720, r, 1.0 / 5040), times(x2, line(1.0 / 40320, r, 1.0 / 362880)));
  const Doubles high =
      plus(line(1.0 / 3628800, r, 1.0 / 39916800), times(x2, line(1.0 / 479001600, r, 1.0 / 6227020800)));
  const Doubles rest = plus(plus(low, times(x4, middle)), times(x8, high));
  const Doubles series = plus(Doubles(1.0), plus(r, times(times(r, r), rest)));
  const Doubles half = plus(times(exponent.whole, Doubles(0.5)), Doubles(kRoundToWhole));
  const Doubles left =
      plus(sub_rn(exponent.whole, sub_rn(half, Doubles(kRoundToWhole))), Doubles(kRoundToWhole));
  return times(times(series, power_of_whole(half)), power_of_whole(left));
}

// a < b as unsigned numbers
SIMT Bools is_below(Ints a, Ints b) { return (a ^ Ints(INT32_MIN)) < (b ^ Ints(INT32_MIN)); }

// x = 2^whole * (1 + f) with 1 + f from sqrt(1/2) to sqrt(2)
struct LogarithmParts {
  Doubles whole, f;
};
SIMT LogarithmParts logarithm_parts(Doubles x) {
  const Ints root_low(0x667F3BCD), root_high(0x3FE6A09E);  // the bits of sqrt(1/2)
  const Ints low = low_word(x) - root_low;
  const Ints borrow = select(is_below(low_word(x), root_low), Ints(1), Ints(0));
  const Ints high = high_word(x) - root_high - borrow;
  const Ints whole = ((high + Ints(0x3FF00000)) >> Ints(20)) - Ints(1023);
  const Ints one_low = low + root_low;
  const Ints carry = select(is_below(one_low, low), Ints(1), Ints(0));
  const Ints one_high = (high & Ints(0xFFFFF)) + root_high + carry;
  return {to_double(whole), sub_rn(from_words(one_low, one_high), Doubles(1.0))};
}

// ln x of a normal number
SIMT_PART Doubles portable_log_of_normal_of(Doubles x) {
  const LogarithmParts parts = logarithm_parts(x);
  const Doubles f = parts.f, s = div_rn(f, plus(Doubles(2.0), f));
  const Doubles z = times(s, s), z2 = times(z, z), z4 = times(z2, z2);
  const Doubles low = plus(line(2.0 / 3, z, 2.0 / 5), times(z2, line(2.0 / 7, z, 2.0 / 9)));
  const Doubles middle = plus(line(2.0 / 11, z, 2.0 / 13), times(z2, line(2.0 / 15, z, 2.0 / 17)));
  const Doubles high = plus(line(2.0 / 19, z, 2.0 / 21), times(z2, Doubles(2.0 / 23)));
  const Doubles rest = times(z, plus(plus(low, times(z4, middle)), times(times(z4, z4), high)));
  const Doubles half = times(times(Doubles(0.5), f), f);
  const Doubles lower = plus(times(s, plus(half, rest)), times(parts.whole, Doubles(kLn2Low)));
  return sub_rn(times(parts.whole, Doubles(kLn2High)), sub_rn(sub_rn(half, lower), f));
}

// ln(1 + e^x); above 20 it is x.
SIMT_PART Floats softplus_of(Floats x) {
  const Doubles power = portable_exp_of(to_double(x));
  const Doubles sum = plus(Doubles(1.0), power);
  const Doubles log = times(portable_log_of_normal_of(sum), div_rn(power, sub_rn(sum, Doubles(1.0))));
  return select(x > Floats(20.0F), x, to_float(select(sum == Doubles(1.0), power, log)));
}

}  // namespace outrider::simt
