// SPDX-License-Identifier: Apache-2.0
// The block types of GGUF (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and ggml-common.h), as
// laid out in files. `d` and `dmin` are half-precision scales.
#pragma once

#include <cstdint>

namespace outrider {

// x[i] = d * qs[i]
struct BlockQ8_0 {
  uint16_t d;
  int8_t qs[32];
};

// x[i] = d * (q[i] - 8); byte i holds q[i] in its low and q[i + 16] in its high nibble.
struct BlockQ4_0 {
  uint16_t d;
  uint8_t qs[16];
};

// Eight groups of 32 with a 6-bit scale s and minimum m each: x = d * s * q - dmin * m. Bytes 32 c + l of qs
// hold element l of group 2c in their low and of group 2c + 1 in their high nibbles. scales: bytes 0-3 and
// 4-7 hold s and m of groups 0-3 in their low six bits; byte 8 + g holds the low four bits of s and m of
// group 4 + g; their upper two bits stand on top of bytes g and 4 + g.
struct BlockQ4_K {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qs[128];
};

// Q4_K with a fifth bit: bit g of qh[l] belongs to element l of group g.
struct BlockQ5_K {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};

// Sixteen groups of 16: x = d * scales[group] * (q - 32). Each half of 128 elements has 64 bytes of ql and 32
// of qh: element 32 c + l has its low nibble in ql[l + 32 * (c % 2)] (low nibble for c < 2, else high) and
// its upper two bits in bits 2c and 2c + 1 of qh[l].
struct BlockQ6_K {
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  uint16_t d;
};

static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_0) == 18);
static_assert(sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);

}  // namespace outrider
