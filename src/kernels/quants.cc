// SPDX-License-Identifier: Apache-2.0
#include "kernels/quants.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "kernels/isa_ops.h"
#include "kernels/quants_k.h"
#include "kernels/quants_small.h"
#include "kernels/weight_codes.h"

namespace outrider {
namespace {

// Blocks in files are only byte-aligned.
template <typename T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
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

// The scale maps a block's largest magnitude to 448, the largest number; a number that is not finite makes it
// NaN.
void quantize_f8(const float* row, std::byte* out, int64_t elements) {
  for (int64_t begin = 0; begin < elements; begin += kF8Block) {
    float largest = 0, nothing = 0;
    for (int64_t i = begin; i < begin + kF8Block; ++i) {
      largest = std::fmax(largest, std::fabs(row[i]));
      nothing += row[i] * 0;
    }
    const float scale = largest / 448 + nothing;
    const float inverse = scale > 0 ? 1 / scale : 0;
    std::memcpy(out, &scale, sizeof(scale));
    out += sizeof(scale);
    for (int64_t i = begin; i < begin + kF8Block; ++i)
      *out++ = static_cast<std::byte>(f32_to_e4m3(row[i] * inverse));
  }
}

void quantize_e4m3(const float* row, std::byte* out, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) out[i] = static_cast<std::byte>(f32_to_e4m3(row[i]));
}

void dequantize_e4m3(const std::byte* row, float* out, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) {
    const auto bits = static_cast<uint8_t>(row[i]);
    out[i] = is_e4m3_nan(bits) ? std::numeric_limits<float>::quiet_NaN() : e4m3_to_f32(bits);
  }
}

void dequantize_f8(const std::byte* row, float* out, int64_t elements) {
  // A call for each number would take longer than all else.
  static const auto values = [] {
    std::array<float, 256> all;
    for (size_t bits = 0; bits < all.size(); ++bits) all[bits] = e4m3_to_f32(static_cast<uint8_t>(bits));
    return all;
  }();
  for (int64_t begin = 0; begin < elements; begin += kF8Block) {
    const auto scale = read<float>(row);
    row += sizeof(scale);
    for (int64_t i = 0; i < kF8Block; ++i) *out++ = scale * values[static_cast<size_t>(*row++)];
  }
}

template <uint16_t (*convert)(float)>
void convert_numbers(const float* row, std::byte* out, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) {
    const uint16_t bits = convert(row[i]);
    std::memcpy(out + i * 2, &bits, sizeof(bits));
  }
}

// Replaces codes by the numbers that they stand for.
void to_numbers(const CodeType& type, int8_t* codes) {
  if (type.bits == 8 || type.has_min) return;
  const int8_t* numbers = nibble_numbers(type.values);
  for (int i = 0; i < kCodesPerStretch; ++i) codes[i] = numbers[codes[i]];
}

void dequantize_groups(DType dtype, const std::byte* row, float* out, int64_t elements) {
  const CodeType type = code_type(dtype);
  WeightCodes stretch;
  for (int64_t begin = 0; begin < elements; begin += kCodesPerStretch) {
    read_codes(dtype, row, begin, elements, stretch);
    to_numbers(type, stretch.codes);
    const int64_t count = std::min<int64_t>(kCodesPerStretch, elements - begin);
    for (int64_t group = 0; group < count / type.group; ++group) {
      const int8_t* numbers = stretch.codes + group * type.group;
      const float scale = stretch.scales[group];
      const float min = type.has_min ? stretch.mins[group] : 0;
      for (int i = 0; i < type.group; ++i) *out++ = scale * static_cast<float>(numbers[i]) - min;
    }
  }
}

}  // namespace

bool can_quantize(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8:
    case DType::kI8:
    case DType::kQ8_0:
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ6_K:
    case DType::kIQ4_NL:
    case DType::kMXFP4:
      return true;
    default:
      return false;
  }
}

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
    case DType::kE4M3:
      return dequantize_e4m3(row, out, elements);
    case DType::kF8:
      return dequantize_f8(row, out, elements);
    case DType::kI8:
      return dequantize_i8(row, out, elements);
    default:
      return dequantize_groups(dtype, row, out, elements);
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
    case DType::kE4M3:
      return quantize_e4m3(row, out, elements);
    case DType::kF8:
      return quantize_f8(row, out, elements);
    case DType::kI8:
      return quantize_i8(row, out, elements);
    case DType::kQ8_0:
      return quantize_blocks<BlockQ8_0>(row, out, elements, 32);
    case DType::kQ4_0:
      return quantize_blocks<BlockQ4_0>(row, out, elements, 32);
    case DType::kQ4_1:
      return quantize_blocks<BlockQ4_1>(row, out, elements, 32);
    case DType::kQ5_0:
      return quantize_blocks<BlockQ5_0>(row, out, elements, 32);
    case DType::kQ5_1:
      return quantize_blocks<BlockQ5_1>(row, out, elements, 32);
    case DType::kIQ4_NL:
      return quantize_blocks<BlockIQ4_NL>(row, out, elements, 32);
    case DType::kMXFP4:
      return quantize_blocks<BlockMXFP4>(row, out, elements, 32);
    case DType::kQ4_K:
      return quantize_blocks<BlockQ4_K>(row, out, elements, 256);
    case DType::kQ6_K:
      return quantize_blocks<BlockQ6_K>(row, out, elements, 256);
    default:
      OUTRIDER_CHECK(can_quantize(dtype));
  }
}

}  // namespace outrider
