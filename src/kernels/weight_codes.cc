// SPDX-License-Identifier: Apache-2.0
#include "kernels/weight_codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/quant_blocks.h"

namespace outrider {
namespace {

template <typename Block>
Block block_at(const std::byte* row, int64_t index) {
  Block block;
  std::memcpy(&block, row + index * static_cast<int64_t>(sizeof(Block)), sizeof(Block));
  return block;
}

void read_block(const BlockQ8_0& block, int index, WeightCodes& out) {
  std::memcpy(out.codes + index * 32, block.qs, sizeof(block.qs));
  out.scales[index] = block.d;
}

void read_block(const BlockQ4_0& block, int index, WeightCodes& out) {
  int8_t* codes = out.codes + index * 32;
  for (int i = 0; i < 16; ++i) {
    codes[i] = static_cast<int8_t>(block.qs[i] & 15);
    codes[i + 16] = static_cast<int8_t>(block.qs[i] >> 4);
  }
  out.scales[index] = block.d;
}

template <typename Block>
void read_scales_and_mins(const Block& block, float unit, WeightCodes& out) {
  const uint8_t* s = block.scales;
  const float d = f16_to_f32(block.d) / unit;
  const float dmin = f16_to_f32(block.dmin) / unit;
  for (int group = 0; group < 8; ++group) {
    const int low = group & 3;
    const int scale = group < 4 ? s[low] & 63 : (s[8 + low] & 15) | (s[low] >> 6 << 4);
    const int min = group < 4 ? s[4 + low] & 63 : (s[8 + low] >> 4) | (s[4 + low] >> 6 << 4);
    out.scales[group] = f32_to_f16(d * static_cast<float>(scale));
    out.mins[group] = f32_to_f16(dmin * static_cast<float>(min));
  }
}

void read_nibbles(const uint8_t* qs, int8_t* codes) {
  for (int pair = 0; pair < 4; ++pair) {
    for (int l = 0; l < 32; ++l) {
      codes[pair * 64 + l] = static_cast<int8_t>(qs[pair * 32 + l] & 15);
      codes[pair * 64 + 32 + l] = static_cast<int8_t>(qs[pair * 32 + l] >> 4);
    }
  }
}

void read_block(const BlockQ4_K& block, float unit, WeightCodes& out) {
  read_scales_and_mins(block, unit, out);
  read_nibbles(block.qs, out.codes);
}

void read_block(const BlockQ5_K& block, float unit, WeightCodes& out) {
  read_scales_and_mins(block, unit, out);
  read_nibbles(block.qs, out.codes);
  for (int group = 0; group < 8; ++group) {
    for (int l = 0; l < 32; ++l) {
      const int fifth = block.qh[l] >> group & 1;
      out.codes[group * 32 + l] = static_cast<int8_t>(out.codes[group * 32 + l] | fifth << 4);
    }
  }
}

void read_block(const BlockQ6_K& block, float unit, WeightCodes& out) {
  const float d = f16_to_f32(block.d) / unit;
  for (int group = 0; group < 16; ++group)
    out.scales[group] = f32_to_f16(d * static_cast<float>(block.scales[group]));
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

template <typename Block>
void read_small_blocks(const std::byte* row, int64_t begin, int64_t count, WeightCodes& out) {
  for (int i = 0; i < count / 32; ++i) read_block(block_at<Block>(row, begin / 32 + i), i, out);
}

template <typename Block>
float largest_scale_with_min(const std::byte* row, int64_t elements) {
  float largest = 0;
  for (int64_t i = 0; i < elements / 256; ++i) {
    const auto block = block_at<Block>(row, i);
    largest = std::max({largest, std::fabs(f16_to_f32(block.d)), std::fabs(f16_to_f32(block.dmin))});
  }
  return 63 * largest;
}

float largest_scale(DType dtype, const std::byte* row, int64_t elements) {
  if (dtype == DType::kQ4_K) return largest_scale_with_min<BlockQ4_K>(row, elements);
  if (dtype == DType::kQ5_K) return largest_scale_with_min<BlockQ5_K>(row, elements);
  float largest = 0;
  for (int64_t i = 0; i < elements / 256; ++i) {
    largest = std::max(largest, std::fabs(f16_to_f32(block_at<BlockQ6_K>(row, i).d)));
  }
  return 128 * largest;
}

}  // namespace

float scale_unit(DType dtype, const std::byte* row, int64_t elements) {
  if (dtype == DType::kQ4_0 || dtype == DType::kQ8_0) return 1;
  const float largest = largest_scale(dtype, row, elements);
  // Corrupt scales stay as they are: infinities and NaN show in the output as with any other type.
  if (!(largest > 0) || !std::isfinite(largest)) return 1;
  constexpr int kLargestExponent = 15;
  return std::ldexp(1.0F, std::ilogb(largest) - kLargestExponent + 1);
}

void read_codes(DType dtype, const std::byte* row, int64_t begin, int64_t elements, float unit,
                WeightCodes& out) {
  const int64_t count = std::min<int64_t>(kCodesPerStretch, elements - begin);
  if (count < kCodesPerStretch) out = {};
  switch (dtype) {
    case DType::kQ8_0:
      return read_small_blocks<BlockQ8_0>(row, begin, count, out);
    case DType::kQ4_0:
      return read_small_blocks<BlockQ4_0>(row, begin, count, out);
    case DType::kQ4_K:
      return read_block(block_at<BlockQ4_K>(row, begin / 256), unit, out);
    case DType::kQ5_K:
      return read_block(block_at<BlockQ5_K>(row, begin / 256), unit, out);
    case DType::kQ6_K:
      return read_block(block_at<BlockQ6_K>(row, begin / 256), unit, out);
    default:
      OUTRIDER_CHECK(block_elements(dtype) > 1);
  }
}

}  // namespace outrider
