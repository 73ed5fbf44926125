// SPDX-License-Identifier: Apache-2.0
// The block types of GGUF (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and ggml-common.h), as
// laid out in files. `d` and `dmin` are half-precision scales. "Low, then high nibbles" of n bytes are 2 n
// numbers: the low nibbles in order, then the high ones. Planes of bits of n bytes are n numbers each: first
// the lowest bits of all bytes, then the bits above them.
#pragma once

#include <cstdint>

namespace outrider {

// x[i] = d * qs[i]
struct BlockQ8_0 {
  uint16_t d;
  int8_t qs[32];
};

// x = d * (q - 8), q in low, then high nibbles.
struct BlockQ4_0 {
  uint16_t d;
  uint8_t qs[16];
};

// x = d * q + m, q as in Q4_0.
struct BlockQ4_1 {
  uint16_t d;
  uint16_t m;
  uint8_t qs[16];
};

// x = d * (q - 16): the lower bits of q as in Q4_0, the fifth of number i in bit i of qh.
struct BlockQ5_0 {
  uint16_t d;
  uint8_t qh[4];
  uint8_t qs[16];
};

// x = d * q + m, q as in Q5_0.
struct BlockQ5_1 {
  uint16_t d;
  uint16_t m;
  uint8_t qh[4];
  uint8_t qs[16];
};

// x = d * value(q), q as in Q4_0; the values are NibbleValues::kIq4.
struct BlockIQ4_NL {
  uint16_t d;
  uint8_t qs[16];
};

// x = 2^(e - 128) * value(q), q as in Q4_0; the values are NibbleValues::kFp4, twice the numbers of E2M1.
struct BlockMXFP4 {
  uint8_t e;
  uint8_t qs[16];
};

// Four groups of 16 numbers, each in low, then high nibbles of 8 bytes: x = scale / 2 * value(q), scales in
// E4M3 without sign, values as in MXFP4.
struct BlockNVFP4 {
  uint8_t scales[4];
  uint8_t qs[32];
};

// The numbers of a block of NVFP4, times the factor of their matrix.
struct BlockNVFP4F {
  float factor;
  BlockNVFP4 numbers;
};

// Sixteen groups of 16 with a 4-bit scale (low nibble) and minimum (high nibble): x = d * s * q - dmin * m.
// Each half of 128 numbers has 32 bytes of qs, in planes of two bits.
struct BlockQ2_K {
  uint8_t scales[16];
  uint8_t qs[64];
  uint16_t d;
  uint16_t dmin;
};

// Sixteen groups of 16: x = d * (s - 32) * (q - 4). The lower two bits of q as in Q2_K, the upper one in
// planes of hmask. In `scales` the low, then high nibbles of bytes 0-7 are the lower four bits of s, the
// planes of two bits of bytes 8-11 the upper ones.
struct BlockQ3_K {
  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[12];
  uint16_t d;
};

// Eight groups of 32 with a 6-bit scale s and minimum m each: x = d * s * q - dmin * m. Bytes 32 c + l of qs
// hold element l of group 2c in their low and of group 2c + 1 in their high nibbles. In `scales` bytes 0-3
// and 4-7 hold s and m of groups 0-3 in their low six bits. Byte 8 + g holds the low four bits of s and m of
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
// of qh. Element 32 c + l has its low nibble in ql[l + 32 * (c % 2)] (low nibble for c < 2, else high). Its
// upper two bits are bits 2c and 2c + 1 of qh[l].
struct BlockQ6_K {
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  uint16_t d;
};

// Eight groups of 32 numbers, each in low, then high nibbles of 16 bytes: x = d * (s - 32) * value(q), values
// as in IQ4_NL. The lower four bits of s are nibble g of scales_l, the upper two are bits 2g and 2g + 1 of
// scales_h.
struct BlockIQ4_XS {
  uint16_t d;
  uint16_t scales_h;
  uint8_t scales_l[4];
  uint8_t qs[128];
};

// x = d * (t - 1), t in 0..2. A byte holds five digits of base 3 as a fraction of 256. Digit n of the 32
// bytes that come first is number 32 n + byte, then 16 bytes have 80 numbers, and qh has four digits each.
struct BlockTQ1_0 {
  uint8_t qs[48];
  uint8_t qh[4];
  uint16_t d;
};

// x = d * (q - 1); each half of 128 numbers has 32 bytes of qs, in planes of two bits.
struct BlockTQ2_0 {
  uint8_t qs[64];
  uint16_t d;
};

// The types below take eight numbers, or four, from an entry of a grid (iq_grids.h). A byte of signs has bit
// i set if number i is negative; where seven bits are stored, the eighth makes their number even.

// Groups of 32: x = d * (s + 0.5) / 4 * grid2 value. A group has four bytes of indices, then a word of four
// times seven bits of signs and, on top, s.
struct BlockIQ2_XXS {
  uint16_t d;
  uint16_t qs[32];
};

// Groups of 16: x = d * (s + 0.5) / 4 * grid2 value. A word has nine bits of an index and seven of signs;
// nibble g of scales is s.
struct BlockIQ2_XS {
  uint16_t d;
  uint16_t qs[32];
  uint8_t scales[8];
};

// IQ2_XS with indices of ten bits, the upper two in bits 2 (i % 4) of qh[i / 4], and all signs stored.
struct BlockIQ2_S {
  uint16_t d;
  uint8_t qs[32];
  uint8_t signs[32];
  uint8_t qh[8];
  uint8_t scales[8];
};

// Groups of 32: x = d * (s + 0.5) / 2 * grid3 value. signs has a word for each group, as in IQ2_XXS.
struct BlockIQ3_XXS {
  uint16_t d;
  uint8_t qs[64];
  uint8_t signs[32];
};

// Groups of 32: x = d * (2 s + 1) * grid3 value. The ninth bit of index i is bit i % 8 of qh[i / 8], nibble g
// of scales is s.
struct BlockIQ3_S {
  uint16_t d;
  uint8_t qs[64];
  uint8_t qh[8];
  uint8_t signs[32];
  uint8_t scales[4];
};

// Groups of 32: x = d * (2 s + 1) * (grid1 value +- 1/8). A word of qh has the upper three bits of four
// indices, s, and the sign of the eighth on top.
struct BlockIQ1_S {
  uint16_t d;
  uint8_t qs[32];
  uint16_t qh[8];
};

// IQ1_S in groups of 16. Nibble i of qh has the upper three bits of index i and the sign of its eighth. A
// word of scales has s of four groups and, on top, a nibble of d.
struct BlockIQ1_M {
  uint8_t qs[32];
  uint8_t qh[16];
  uint16_t scales[4];
};

}  // namespace outrider
