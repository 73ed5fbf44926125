// SPDX-License-Identifier: Apache-2.0
// Blocks of 256 numbers, except blocks with grids.
#include "kernels/blocks/block_codes.h"
#include "tensor/dtype.h"

namespace outrider {
namespace {

constexpr int kGroups32 = 8;
constexpr int kGroups16 = 16;

int nibble_at(const uint8_t* bytes, int i) { return bytes[i / 2] >> (i % 2 * 4) & 15; }

// Q4_K and Q5_K
template <typename Block>
void put_scales_and_mins(const Block& block, const BlockCodes& out) {
  const uint8_t* s = block.scales;
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (int group = 0; group < kGroups32; ++group) {
    const int low = group & 3;
    const int scale = group < 4 ? s[low] & 63 : (s[8 + low] & 15) | (s[low] >> 6 << 4);
    const int min = group < 4 ? s[4 + low] & 63 : (s[8 + low] >> 4) | (s[4 + low] >> 6 << 4);
    out.scales[group] = d * static_cast<float>(scale);
    out.mins[group] = dmin * static_cast<float>(min);
  }
}

// `count` bytes in low, then high nibbles, `pairs` times.
void put_nibbles(const uint8_t* bytes, int pairs, int count, int8_t* codes) {
  for (int pair = 0; pair < pairs; ++pair, bytes += count, codes += 2 * count) {
    for (int l = 0; l < count; ++l) {
      codes[l] = static_cast<int8_t>(bytes[l] & 15);
      codes[count + l] = static_cast<int8_t>(bytes[l] >> 4);
    }
  }
}

// Two halves of four planes of two bits each, plus `added`.
void put_two_bit_planes(const uint8_t* bytes, int added, int8_t* codes) {
  for (int plane = 0; plane < 8; ++plane) {
    for (int l = 0; l < 32; ++l) {
      const int code = bytes[plane / 4 * 32 + l] >> (plane % 4 * 2) & 3;
      codes[plane * 32 + l] = static_cast<int8_t>(code + added);
    }
  }
}

// Digits in base 3 of `count` bytes: one digit of all bytes after the other. A byte is a fraction of 256; its
// integer part after multiplication by 3 is the next digit.
int8_t* put_ternary_digits(const uint8_t* bytes, int count, int digits, int8_t* codes) {
  constexpr uint8_t kPowers[] = {1, 3, 9, 27, 81};
  constexpr int kZeroDigit = 7;  // the code of -1
  for (int digit = 0; digit < digits; ++digit) {
    for (int i = 0; i < count; ++i) {
      const auto rest = static_cast<uint8_t>(bytes[i] * kPowers[digit]);
      *codes++ = static_cast<int8_t>((rest * 3 >> 8) + kZeroDigit);
    }
  }
  return codes;
}

// One scale for all groups.
void put_same_scale(uint16_t d, const BlockCodes& out) {
  for (int group = 0; group < kGroups32; ++group) out.scales[group] = f16_to_f32(d);
}

}  // namespace

void read_block(const BlockQ2_K& block, const BlockCodes& out) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (int group = 0; group < kGroups16; ++group) {
    out.scales[group] = d * static_cast<float>(block.scales[group] & 15);
    out.mins[group] = dmin * static_cast<float>(block.scales[group] >> 4);
  }
  put_two_bit_planes(block.qs, 0, out.codes);
}

void read_block(const BlockQ3_K& block, const BlockCodes& out) {
  const float d = f16_to_f32(block.d);
  for (int group = 0; group < kGroups16; ++group) {
    const int low = block.scales[group % 8] >> (group / 8 * 4) & 15;
    const int high = block.scales[8 + group % 4] >> (group / 4 * 2) & 3;
    out.scales[group] = d * static_cast<float>((low | high << 4) - 32);
  }
  put_two_bit_planes(block.qs, 4, out.codes);  // -4 has the code 4
  for (int i = 0; i < 256; ++i) {
    out.codes[i] = static_cast<int8_t>(out.codes[i] + (block.hmask[i % 32] >> (i / 32) & 1) * 4);
  }
}

void read_block(const BlockQ4_K& block, const BlockCodes& out) {
  put_scales_and_mins(block, out);
  put_nibbles(block.qs, 4, 32, out.codes);
}

void read_block(const BlockQ5_K& block, const BlockCodes& out) {
  put_scales_and_mins(block, out);
  put_nibbles(block.qs, 4, 32, out.codes);
  for (int i = 0; i < 256; ++i) {
    const int fifth = block.qh[i % 32] >> (i / 32) & 1;
    out.codes[i] = static_cast<int8_t>(out.codes[i] | fifth << 4);
  }
}

void read_block(const BlockQ6_K& block, const BlockCodes& out) {
  const float d = f16_to_f32(block.d);
  for (int group = 0; group < kGroups16; ++group)
    out.scales[group] = d * static_cast<float>(block.scales[group]);
  for (int half = 0; half < 2; ++half) {
    const uint8_t* ql = block.ql + half * 64;
    const uint8_t* qh = block.qh + half * 32;
    int8_t* codes = out.codes + half * 128;
    for (int c = 0; c < 4; ++c) {
      for (int l = 0; l < 32; ++l) {
        const uint8_t low = ql[c % 2 * 32 + l];
        const int code = (c < 2 ? low & 15 : low >> 4) | (qh[l] >> (2 * c) & 3) << 4;
        codes[c * 32 + l] = static_cast<int8_t>(code - 32);
      }
    }
  }
}

void read_block(const BlockIQ4_XS& block, const BlockCodes& out) {
  const float d = f16_to_f32(block.d);
  for (int group = 0; group < kGroups32; ++group) {
    const int scale = nibble_at(block.scales_l, group) | (block.scales_h >> (2 * group) & 3) << 4;
    out.scales[group] = d * static_cast<float>(scale - 32);
  }
  put_nibbles(block.qs, 8, 16, out.codes);
}

void read_block(const BlockTQ1_0& block, const BlockCodes& out) {
  put_same_scale(block.d, out);
  int8_t* codes = put_ternary_digits(block.qs, 32, 5, out.codes);
  codes = put_ternary_digits(block.qs + 32, 16, 5, codes);
  put_ternary_digits(block.qh, 4, 4, codes);
}

void read_block(const BlockTQ2_0& block, const BlockCodes& out) {
  put_same_scale(block.d, out);
  put_two_bit_planes(block.qs, 7, out.codes);  // -1 has the code 7
}

}  // namespace outrider
