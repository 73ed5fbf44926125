// SPDX-License-Identifier: Apache-2.0
// Lanes of f64, for functions that have to round like f64 on this machine (base/portable_math.h).
#pragma once

#include "device_kernels/simt/emulated_lanes.h"

namespace outrider::simt {

template <>
struct alignas(64) Lanes<double> {
  double v[kWarp];

  Lanes() = default;
  [[gnu::always_inline]] Lanes(double all) {
    for (double& lane : v) lane = all;
  }
  OUTRIDER_SIMT_COMPARISON(<)
  OUTRIDER_SIMT_COMPARISON(>)
  OUTRIDER_SIMT_COMPARISON(<=)
  OUTRIDER_SIMT_COMPARISON(>=)
  OUTRIDER_SIMT_COMPARISON(==)
};

OUTRIDER_SIMT_BINARY(double, add_rn, x + y)
OUTRIDER_SIMT_BINARY(double, sub_rn, x - y)
OUTRIDER_SIMT_BINARY(double, mul_rn, x* y)
OUTRIDER_SIMT_BINARY(double, div_rn, x / y)

SIMT Lanes<double> to_double(const Lanes<float>& a) {
  Lanes<double> r;
  for (int l = 0; l < kWarp; ++l) r.v[l] = static_cast<double>(a.v[l]);
  return r;
}
SIMT Lanes<double> to_double(const Lanes<int>& a) {
  Lanes<double> r;
  for (int l = 0; l < kWarp; ++l) r.v[l] = static_cast<double>(a.v[l]);
  return r;
}
// To nearest, ties to even.
SIMT float to_float(double a) { return static_cast<float>(a); }
SIMT Lanes<float> to_float(const Lanes<double>& a) {
  Lanes<float> r;
  for (int l = 0; l < kWarp; ++l) r.v[l] = static_cast<float>(a.v[l]);
  return r;
}

// The 32 lower, and the 32 upper bits of a number.
SIMT Lanes<int> low_word(const Lanes<double>& a) {
  Lanes<int> r;
  for (int l = 0; l < kWarp; ++l) {
    uint64_t bits;
    std::memcpy(&bits, &a.v[l], sizeof(bits));
    r.v[l] = static_cast<int>(static_cast<uint32_t>(bits));
  }
  return r;
}
SIMT Lanes<int> high_word(const Lanes<double>& a) {
  Lanes<int> r;
  for (int l = 0; l < kWarp; ++l) {
    uint64_t bits;
    std::memcpy(&bits, &a.v[l], sizeof(bits));
    r.v[l] = static_cast<int>(static_cast<uint32_t>(bits >> 32));
  }
  return r;
}
SIMT Lanes<double> from_words(const Lanes<int>& low, const Lanes<int>& high) {
  Lanes<double> r;
  for (int l = 0; l < kWarp; ++l) {
    const uint64_t bits =
        static_cast<uint64_t>(static_cast<uint32_t>(high.v[l])) << 32 | static_cast<uint32_t>(low.v[l]);
    std::memcpy(&r.v[l], &bits, sizeof(bits));
  }
  return r;
}

}  // namespace outrider::simt
