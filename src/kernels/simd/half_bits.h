// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace outrider {

// The bits of the half-precision number at p. Each file has its own copy, see isa_ops.h.
[[maybe_unused]] static int16_t half_bits(const uint8_t* p) {
  int16_t bits;
  __builtin_memcpy(&bits, p, sizeof(bits));
  return bits;
}

}  // namespace outrider
