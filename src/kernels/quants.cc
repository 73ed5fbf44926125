// SPDX-License-Identifier: Apache-2.0
#include "kernels/quants.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "kernels/quant_blocks.h"
#include "kernels/quants_k.h"

namespace outrider {
namespace {

// Blocks in files are only byte-aligned.
template <typename T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

void dequantize(const BlockQ8_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(block.qs[i]);
}

void dequantize(const BlockQ4_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((block.qs[i] & 15) - 8);
    out[i + 16] = d * static_cast<float>((block.qs[i] >> 4) - 8);
  }
}

struct ScaleAndMin {
  float scale;
  float min;
};

template <typename Block>
ScaleAndMin scale_and_min(const Block& block, int group) {
  const uint8_t* s = block.scales;
  const int low = group & 3;
  const int scale = group < 4 ? s[low] & 63 : (s[8 + low] & 15) | (s[low] >> 6 << 4);
  const int min = group < 4 ? s[4 + low] & 63 : (s[8 + low] >> 4) | (s[4 + low] >> 6 << 4);
  return {f16_to_f32(block.d) * static_cast<float>(scale), f16_to_f32(block.dmin) * static_cast<float>(min)};
}

int nibble_of_group(const uint8_t* qs, int group, int l) {
  const uint8_t byte = qs[group / 2 * 32 + l];
  return group % 2 == 0 ? byte & 15 : byte >> 4;
}

void dequantize(const BlockQ4_K& block, float* out) {
  for (int group = 0; group < 8; ++group) {
    const ScaleAndMin s = scale_and_min(block, group);
    for (int l = 0; l < 32; ++l) {
      out[group * 32 + l] = s.scale * static_cast<float>(nibble_of_group(block.qs, group, l)) - s.min;
    }
  }
}

void dequantize(const BlockQ5_K& block, float* out) {
  for (int group = 0; group < 8; ++group) {
    const ScaleAndMin s = scale_and_min(block, group);
    for (int l = 0; l < 32; ++l) {
      const int q = nibble_of_group(block.qs, group, l) | (block.qh[l] >> group & 1) << 4;
      out[group * 32 + l] = s.scale * static_cast<float>(q) - s.min;
    }
  }
}

void dequantize(const BlockQ6_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, c = i % 128 / 32, l = i % 32;
    const uint8_t low = block.ql[half * 64 + c % 2 * 32 + l];
    const int q = (c < 2 ? low & 15 : low >> 4) | (block.qh[half * 32 + l] >> (2 * c) & 3) << 4;
    out[i] = d * static_cast<float>(block.scales[i / 16]) * static_cast<float>(q - 32);
  }
}

template <typename Block>
void dequantize_blocks(const std::byte* row, float* out, int64_t elements, int64_t block_size) {
  for (int64_t i = 0; i < elements; i += block_size, row += sizeof(Block)) {
    dequantize(read<Block>(row), out + i);
  }
}

// NaN becomes `low`, so that any input gives a defined code.
int clamp_to_int(double value, int low, int high) {
  if (!(value > low)) return low;
  return value < high ? static_cast<int>(value) : high;
}

// The scale maps the largest magnitude to 127; codes round half away from zero.
void quantize_block(const float* x, BlockQ8_0& block) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::fmax(largest, std::fabs(x[i]));
  const float d = largest / 127;
  const float inverse = d == 0 ? 0 : 1 / d;
  block.d = f32_to_f16(d);
  for (int i = 0; i < 32; ++i)
    block.qs[i] = static_cast<int8_t>(clamp_to_int(std::round(x[i] * inverse), -128, 127));
}

// The scale maps the number of largest magnitude to code -8; codes round half up. All arithmetic is f32,
// which decides the code of numbers that only the rounding of the scale moves off the midpoint.
void quantize_block(const float* x, BlockQ4_0& block) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) {
    if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
  }
  const float d = largest / -8;
  const float inverse = d == 0 ? 0 : 1 / d;
  block.d = f32_to_f16(d);
  for (int i = 0; i < 16; ++i) {
    const int low = clamp_to_int(x[i] * inverse + 8.5F, 0, 15);
    const int high = clamp_to_int(x[i + 16] * inverse + 8.5F, 0, 15);
    block.qs[i] = static_cast<uint8_t>(low | high << 4);
  }
}

template <typename Block>
void quantize_blocks(const float* row, std::byte* out, int64_t elements, int64_t block_size) {
  for (int64_t i = 0; i < elements; i += block_size, out += sizeof(Block)) {
    Block block;
    quantize_block(row + i, block);
    std::memcpy(out, &block, sizeof(Block));
  }
}

// The scale maps the row's largest magnitude to 127; codes round half away from zero.
void quantize_i8(const float* row, std::byte* out, int64_t elements) {
  float largest = 0;
  for (int64_t i = 0; i < elements; ++i) largest = std::fmax(largest, std::fabs(row[i]));
  const float scale = largest / 127;
  const float inverse = scale == 0 ? 0 : 1 / scale;
  std::memcpy(out, &scale, sizeof(scale));
  auto* codes = reinterpret_cast<int8_t*>(out + sizeof(scale));
  for (int64_t i = 0; i < elements; ++i) {
    // Comparisons in this order turn NaN into a code and let compilers vectorize the loop.
    const float scaled = row[i] * inverse;
    const float bounded = scaled > -127 ? (scaled < 127 ? scaled : 127) : -127;
    codes[i] = static_cast<int8_t>(bounded + (bounded < 0 ? -0.5F : 0.5F));
  }
}

void dequantize_i8(const std::byte* row, float* out, int64_t elements) {
  const auto scale = read<float>(row);
  const auto* codes = reinterpret_cast<const int8_t*>(row + sizeof(scale));
  for (int64_t i = 0; i < elements; ++i) out[i] = scale * static_cast<float>(codes[i]);
}

template <uint16_t (*convert)(float)>
void convert_numbers(const float* row, std::byte* out, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) {
    const uint16_t bits = convert(row[i]);
    std::memcpy(out + i * 2, &bits, sizeof(bits));
  }
}

// Calls `visit` with an empty block of the type.
template <typename Visit>
void visit_block_type(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::kQ8_0:
      return visit(BlockQ8_0{});
    case DType::kQ4_0:
      return visit(BlockQ4_0{});
    case DType::kQ4_K:
      return visit(BlockQ4_K{});
    case DType::kQ5_K:
      return visit(BlockQ5_K{});
    case DType::kQ6_K:
      return visit(BlockQ6_K{});
    default:
      OUTRIDER_CHECK(block_elements(dtype) > 1);
  }
}

}  // namespace

void dequantize_row(DType dtype, const std::byte* row, float* out, int64_t elements) {
  switch (dtype) {
    case DType::kF32:
      std::memcpy(out, row, static_cast<size_t>(elements) * sizeof(float));
      return;
    case DType::kF16:
      for (int64_t i = 0; i < elements; ++i) out[i] = f16_to_f32(read<uint16_t>(row + i * 2));
      return;
    case DType::kBF16:
      // This is bf16_to_f32() inline, because a call for each number would take longer than all else.
      for (int64_t i = 0; i < elements; ++i)
        out[i] = std::bit_cast<float>(uint32_t{read<uint16_t>(row + i * 2)} << 16);
      return;
    case DType::kI8:
      return dequantize_i8(row, out, elements);
    default:
      visit_block_type(dtype, [&]<typename Block>(const Block&) {
        dequantize_blocks<Block>(row, out, elements, block_elements(dtype));
      });
  }
}

void quantize_row(DType dtype, const float* row, std::byte* out, int64_t elements) {
  switch (dtype) {
    case DType::kF32:
      std::memcpy(out, row, static_cast<size_t>(elements) * sizeof(float));
      return;
    case DType::kF16:
      return convert_numbers<f32_to_f16>(row, out, elements);
    case DType::kBF16:
      return convert_numbers<f32_to_bf16>(row, out, elements);
    case DType::kI8:
      return quantize_i8(row, out, elements);
    default:
      OUTRIDER_CHECK(dtype != DType::kQ5_K);  // no code here writes it
      visit_block_type(dtype, [&]<typename Block>(const Block&) {
        if constexpr (!std::is_same_v<Block, BlockQ5_K>)
          quantize_blocks<Block>(row, out, elements, block_elements(dtype));
      });
  }
}

}  // namespace outrider
