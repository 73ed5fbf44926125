// SPDX-License-Identifier: Apache-2.0
// Functions with the same bits on every machine, for numbers that decide about text: C libraries round theirs
// in different ways. They are made of products and sums of f64 that round once each; the compiler contracts
// none (-ffp-contract=off). They have no fma, which old processors lack and C libraries then compute slowly.
// Accuracy is in units of the last place, as portable_math_test.cc measures.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace outrider {

namespace portable {

// Added to a number below 2^51, it leaves the nearest whole number in the lowest bits.
inline constexpr double kRound = 0x1.8p52;
// ln 2 in two parts; products of the first with whole numbers below 2^17 are exact.
inline constexpr double kLn2High = 0x1.62e42fefa0000p-1, kLn2Low = 0x1.cf79abc9e3b39p-40;
inline constexpr double kLog2E = 0x1.71547652b82fep+0;

// 2^whole of a whole number to which kRound was added.
inline double power_of_two(double shifted) {
  return std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) << 52) + 0x3FF0000000000000);
}

// x = whole * ln 2 + rest
struct Exponent {
  double shifted, whole, rest;
};
inline Exponent exponent_of(double x) {
  const double shifted = x * kLog2E + kRound;
  const double whole = shifted - kRound;
  return {shifted, whole, (x - whole * kLn2High) - whole * kLn2Low};
}

// Taylor's series of e^x - 1 - x, over x^2, for |x| <= ln 2 / 2.
inline double exp_series(double x) {
  const double x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
  const double low = (1.0 / 2 + x * (1.0 / 6)) + x2 * (1.0 / 24 + x * (1.0 / 120));
  const double middle = (1.0 / 720 + x * (1.0 / 5040)) + x2 * (1.0 / 40320 + x * (1.0 / 362880));
  const double high =
      (1.0 / 3628800 + x * (1.0 / 39916800)) + x2 * (1.0 / 479001600 + x * (1.0 / 6227020800));
  return (low + x4 * middle) + x8 * high;
}

}  // namespace portable

// e^x, within 1 unit.
inline double portable_exp(double x) {
  using namespace portable;
  const double above = x < -746 ? -746 : x;  // beyond, it is 0 or infinite; NaN stays
  const Exponent exponent = exponent_of(above > 710 ? 710 : above);
  const double series = 1 + (exponent.rest + exponent.rest * exponent.rest * exp_series(exponent.rest));
  // Two factors, because one exponent does not reach all results.
  const double half = exponent.whole * 0.5 + kRound;
  return series * power_of_two(half) * power_of_two(exponent.whole - (half - kRound) + kRound);
}

// e^x, within 0.51 units.
inline float portable_exp(float x) {
  using namespace portable;
  const float above = x < -105 ? -105 : x;
  const Exponent exponent = exponent_of(above > 89 ? 89 : above);
  const double rest = exponent.rest, x2 = rest * rest, x4 = x2 * x2;
  const double low = (1.0 / 2 + rest * (1.0 / 6)) + x2 * (1.0 / 24 + rest * (1.0 / 120));
  const double high = (1.0 / 720 + rest * (1.0 / 5040)) + x2 * (1.0 / 40320);
  return static_cast<float>((1 + (rest + x2 * (low + x4 * high))) * power_of_two(exponent.shifted));
}

// 1 / (1 + e^-x), within 2.5 units.
inline float portable_sigmoid(float x) { return 1 / (1 + portable_exp(-x)); }

// ln x of a normal number, within 1 unit.
inline double portable_log_of_normal(double x) {
  using namespace portable;
  // x = 2^whole * (1 + f) with 1 + f from sqrt(1/2) to sqrt(2)
  constexpr uint64_t kRootOfHalf = 0x3FE6A09E667F3BCD, kBias = 0x3FF0000000000000,
                     kNumber = 0x4330000000000000;
  const uint64_t from_root = std::bit_cast<uint64_t>(x) - kRootOfHalf;
  const double whole = std::bit_cast<double>((from_root + kBias) >> 52 | kNumber) - (0x1p52 + 1023);
  const double f = std::bit_cast<double>((from_root & 0xFFFFFFFFFFFFF) + kRootOfHalf) - 1;
  // ln(1 + f) = 2 artanh s = 2 s + s R with s = f / (2 + f), and 2 s = f - s f, which lacks less.
  const double s = f / (2 + f), z = s * s, z2 = z * z, z4 = z2 * z2;
  const double low = (2.0 / 3 + z * (2.0 / 5)) + z2 * (2.0 / 7 + z * (2.0 / 9));
  const double middle = (2.0 / 11 + z * (2.0 / 13)) + z2 * (2.0 / 15 + z * (2.0 / 17));
  const double high = 2.0 / 19 + z * (2.0 / 21) + z2 * (2.0 / 23);
  const double rest = z * ((low + z4 * middle) + z4 * z4 * high), half = 0.5 * f * f;
  return whole * kLn2High - ((half - (s * (half + rest) + whole * kLn2Low)) - f);
}

// ln x, within 1 unit.
inline double portable_log(double x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (x >= std::numeric_limits<double>::min() && x < kInfinity) return portable_log_of_normal(x);
  if (x == 0) return -kInfinity;
  if (!(x > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == kInfinity) return x;
  constexpr double kLnOfScale = 54 * 0x1.62e42fefa39efp-1;
  return portable_log_of_normal(x * 0x1p54) - kLnOfScale;
}

// ln(1 + x) for x > -1, within 2.5 units. 1 + x is rounded; its logarithm is corrected by what was lost.
inline double portable_log1p(double x) {
  const double sum = 1 + x;
  if (sum == 1) return x;
  return sum == std::numeric_limits<double>::infinity() ? sum : portable_log(sum) * (x / (sum - 1));
}

// base^exponent for base > 0, within 0.51 units where neither it nor its logarithm is extreme.
inline float portable_pow(float base, float exponent) {
  return static_cast<float>(
      portable_exp(static_cast<double>(exponent) * portable_log(static_cast<double>(base))));
}

struct SineAndCosine {
  double sine, cosine;
};

// Within 2^-52 for |x| up to 2^24.
inline SineAndCosine portable_sine_and_cosine(double x) {
  // pi / 2 in three parts; the products of the first two with whole numbers below 2^24 are exact.
  constexpr double kHigh = 0x1.921fb54p+0, kMiddle = 0x1.10b4611p-30, kLow = 0x1.4c4c6628b80dcp-59;
  const double shifted = x * 0x1.45f306dc9c883p-1 + portable::kRound;
  const double whole = shifted - portable::kRound;
  const uint64_t quarter = std::bit_cast<uint64_t>(shifted) & 3;
  const double r = ((x - whole * kHigh) - whole * kMiddle) - whole * kLow;
  const double r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
  const double odd = ((-1.0 / 6 + r2 * (1.0 / 120)) + r4 * (-1.0 / 5040 + r2 * (1.0 / 362880))) +
                     r8 * ((-1.0 / 39916800 + r2 * (1.0 / 6227020800)) +
                           r4 * (-1.0 / 1307674368000 + r2 * (1.0 / 355687428096000)));
  const double even = ((1.0 / 24 + r2 * (-1.0 / 720)) + r4 * (1.0 / 40320 + r2 * (-1.0 / 3628800))) +
                      r8 * ((1.0 / 479001600 + r2 * (-1.0 / 87178291200)) + r4 * (1.0 / 20922789888000));
  const double sine = r + r * (r2 * odd), cosine = 1 - (0.5 * r2 - r4 * even);
  const double first = (quarter & 1) != 0 ? cosine : sine, second = (quarter & 1) != 0 ? sine : cosine;
  return {(quarter & 2) != 0 ? -first : first, ((quarter + 1) & 2) != 0 ? -second : second};
}

}  // namespace outrider
