// SPDX-License-Identifier: Apache-2.0
// The numbers that 4-bit codes without a min stand for, as 8-bit numbers and, times a scale, as the bf16
// numbers of tiles. The bf16 numbers are looked up by scale, because a multiplication for every 32 weights
// costs more than a load from the first-level cache. A matrix has a few hundred scales of eight significant
// bits, so the part of the table in use stays there.
#pragma once

#include <cstdint>

namespace outrider {

enum class NibbleValues : uint8_t {
  kCentred,  // code - 8
  kIq4,      // IQ4_NL and IQ4_XS
  kFp4,      // twice the numbers of E2M1
  kGrid1,    // bits 0-1: -1, 0, 1; bit 2: minus one eighth instead of plus; times 8
  kGrid2,    // bits 0-1: magnitude, bit 2: sign
  kGrid3,    // bits 0-2: magnitude, bit 3: sign
  kOdd,      // as kGrid3 with the magnitudes 1, 3, ... 15
};

// [16], by code.
const int8_t* nibble_numbers(NibbleValues values);

// The tile numbers of a scale, given as the bits of its half-precision number, begin at tile_numbers() + bits
// * kTileNumbersStride. Other bits than table_scale()'s lead to wrong numbers, not out of the table.
inline constexpr int kTileNumbersStride = 2;

// [scale][16] bf16: scale times the code's number, rounded to nearest even.
const uint16_t* tile_numbers(NibbleValues values);

// The nearest half-precision number that the table has: one with three zero bits at its end. Ties go to the
// even one; infinities, NaN and the sign stay.
uint16_t table_scale(uint16_t half);

}  // namespace outrider
