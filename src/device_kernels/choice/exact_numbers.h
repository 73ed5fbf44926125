// SPDX-License-Identifier: Apache-2.0
// The functions of base/counter_rng.h for lanes, with the same bits.
#pragma once

#include "device_kernels/rows/portable_functions.h"

namespace outrider::simt {

// For lanes and for plain numbers.
template <typename Number>
SIMT Number mix64(Number x) {
  x = x + Number(uint64_t{0x9E3779B97F4A7C15});
  x = (x ^ (x >> Number(uint64_t{30}))) * Number(uint64_t{0xBF58476D1CE4E5B9});
  x = (x ^ (x >> Number(uint64_t{27}))) * Number(uint64_t{0x94D049BB133111EB});
  return x ^ (x >> Number(uint64_t{31}));
}

SIMT Doubles exponential_of(Longs bits) {
  const Doubles uniform =
      mul_rn(add_rn(to_double(bits >> Longs(uint64_t{12})), Doubles(0.5)), Doubles(0x1.0p-52));
  return sub_rn(Doubles(0.0), portable_log_of_normal_of(uniform));
}

}  // namespace outrider::simt
