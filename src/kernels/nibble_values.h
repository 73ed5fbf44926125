// SPDX-License-Identifier: Apache-2.0
// The values in bf16 tiles of 4-bit codes without a min. They are looked up by scale, because a
// multiplication for every 32 weights costs more than a load from the first-level cache. A matrix has a few
// hundred scales of eight significant bits, so the part of the table in use stays there.
#pragma once

#include <cstdint>

namespace outrider {

// The values of a scale, given as the bits of its half-precision number, begin at nibble_values() + bits *
// kNibbleValuesStride. Other bits than those of table_scale() lead to wrong values, not out of the table.
inline constexpr int kNibbleValuesStride = 2;

// [scale][16] bf16: scale * (code - 8), rounded to nearest even.
const uint16_t* nibble_values();

// The nearest half-precision number that the table has: one whose last three bits are zero. Ties go to the
// even one; infinities, NaN and the sign stay.
uint16_t table_scale(uint16_t half);

}  // namespace outrider
