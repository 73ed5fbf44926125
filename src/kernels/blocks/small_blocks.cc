// SPDX-License-Identifier: Apache-2.0
// Blocks of 32 or 64 numbers.
#include <bit>
#include <cstring>

#include "kernels/blocks/block_codes.h"
#include "tensor/dtype.h"

namespace outrider {
namespace {

void put_nibbles(const uint8_t* bytes, int count, int8_t* codes) {
  for (int i = 0; i < count; ++i) {
    codes[i] = static_cast<int8_t>(bytes[i] & 15);
    codes[count + i] = static_cast<int8_t>(bytes[i] >> 4);
  }
}

// Codes of five bits, less `zero`.
template <typename Block>
void put_five_bits(const Block& block, int zero, int8_t* codes) {
  put_nibbles(block.qs, 16, codes);
  for (int i = 0; i < 32; ++i) {
    const int fifth = block.qh[i / 8] >> (i % 8) & 1;
    codes[i] = static_cast<int8_t>((codes[i] | fifth << 4) - zero);
  }
}

// 2^(e - 128), which is subnormal below e = 2.
float half_of_e8m0(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? 0x00200000U << e : static_cast<uint32_t>(e - 1) << 23);
}

// Half of an E4M3 number; 0x7F, which is no number, counts as 0.
float half_of_e4m3(uint8_t bits) {
  if (bits == 0x7F) return 0;
  const int exponent = bits >> 3 & 15;
  const auto mantissa = static_cast<float>(bits & 7);
  if (exponent == 0) return mantissa * 0x1p-10F;
  return (8 + mantissa) * std::bit_cast<float>(static_cast<uint32_t>(exponent - 11 + 127) << 23);
}

}  // namespace

void read_block(const BlockQ8_0& block, const BlockCodes& out) {
  std::memcpy(out.codes, block.qs, sizeof(block.qs));
  out.scales[0] = f16_to_f32(block.d);
}

void read_block(const BlockQ4_0& block, const BlockCodes& out) {
  put_nibbles(block.qs, 16, out.codes);
  out.scales[0] = f16_to_f32(block.d);
}

void read_block(const BlockQ4_1& block, const BlockCodes& out) {
  put_nibbles(block.qs, 16, out.codes);
  out.scales[0] = f16_to_f32(block.d);
  out.mins[0] = -f16_to_f32(block.m);
}

void read_block(const BlockQ5_0& block, const BlockCodes& out) {
  put_five_bits(block, 16, out.codes);
  out.scales[0] = f16_to_f32(block.d);
}

void read_block(const BlockQ5_1& block, const BlockCodes& out) {
  put_five_bits(block, 0, out.codes);
  out.scales[0] = f16_to_f32(block.d);
  out.mins[0] = -f16_to_f32(block.m);
}

void read_block(const BlockIQ4_NL& block, const BlockCodes& out) {
  put_nibbles(block.qs, 16, out.codes);
  out.scales[0] = f16_to_f32(block.d);
}

void read_block(const BlockMXFP4& block, const BlockCodes& out) {
  put_nibbles(block.qs, 16, out.codes);
  out.scales[0] = half_of_e8m0(block.e);
}

void read_block(const BlockNVFP4& block, const BlockCodes& out) {
  for (int group = 0; group < 4; ++group) {
    put_nibbles(block.qs + group * 8, 8, out.codes + group * 16);
    out.scales[group] = half_of_e4m3(block.scales[group]);
  }
}

void read_block(const BlockNVFP4F& block, const BlockCodes& out) {
  read_block(block.numbers, out);
  for (int group = 0; group < 4; ++group) out.scales[group] *= block.factor;
}

}  // namespace outrider
