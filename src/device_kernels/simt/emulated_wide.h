// SPDX-License-Identifier: Apache-2.0
// Lanes of 64-bit integers, and votes of a warp.
#pragma once

#include "device_kernels/simt/emulated_doubles.h"

namespace outrider::simt {

#define OUTRIDER_SIMT_LONG(op)                                    \
  SIMT friend Lanes operator op(const Lanes& a, const Lanes& b) { \
    Lanes r;                                                      \
    for (int l = 0; l < kWarp; ++l) r.v[l] = a.v[l] op b.v[l];    \
    return r;                                                     \
  }

// Unsigned.
template <>
struct alignas(64) Lanes<uint64_t> {
  uint64_t v[kWarp];

  Lanes() = default;
  [[gnu::always_inline]] Lanes(uint64_t all) {
    for (uint64_t& lane : v) lane = all;
  }
  OUTRIDER_SIMT_LONG(+)
  OUTRIDER_SIMT_LONG(-)
  OUTRIDER_SIMT_LONG(*)
  OUTRIDER_SIMT_LONG(&)
  OUTRIDER_SIMT_LONG(|)
  OUTRIDER_SIMT_LONG(^)
  OUTRIDER_SIMT_LONG(<<)
  OUTRIDER_SIMT_LONG(>>)
};
#undef OUTRIDER_SIMT_LONG

SIMT Lanes<double> to_double(const Lanes<uint64_t>& a) {
  Lanes<double> r;
  for (int l = 0; l < kWarp; ++l) r.v[l] = static_cast<double>(a.v[l]);
  return r;
}
// The number is not negative.
SIMT Lanes<uint64_t> to_long(const Lanes<int>& a) {
  Lanes<uint64_t> r;
  for (int l = 0; l < kWarp; ++l) r.v[l] = static_cast<uint64_t>(static_cast<int64_t>(a.v[l]));
  return r;
}
SIMT Lanes<int> low_word(const Lanes<uint64_t>& a) {
  Lanes<int> r;
  for (int l = 0; l < kWarp; ++l) r.v[l] = static_cast<int>(static_cast<uint32_t>(a.v[l]));
  return r;
}
SIMT Lanes<double> from_bits(const Lanes<uint64_t>& a) {
  Lanes<double> r;
  std::memcpy(r.v, a.v, sizeof(r.v));
  return r;
}
SIMT Lanes<uint64_t> bits_of(const Lanes<double>& a) {
  Lanes<uint64_t> r;
  std::memcpy(r.v, a.v, sizeof(r.v));
  return r;
}

// Votes of a warp: whether a lane has it, how many have it, and how many before each lane have it.
SIMT bool any_lane(const Bools& mask) {
  int32_t any = 0;
  for (int l = 0; l < kWarp; ++l) any |= mask.v[l];
  return any != 0;
}
SIMT int count_lanes(const Bools& mask) {
  int count = 0;
  for (int l = 0; l < kWarp; ++l) count -= mask.v[l];
  return count;
}
SIMT Lanes<int> count_before(const Bools& mask) {
  Lanes<int> r;
  int count = 0;
  for (int l = 0; l < kWarp; ++l) {
    r.v[l] = count;
    count -= mask.v[l];
  }
  return r;
}

}  // namespace outrider::simt
