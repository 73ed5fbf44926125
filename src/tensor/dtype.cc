// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace outrider {
namespace {

struct DTypeInfo {
  std::string_view name;
  int64_t elements;
  int64_t bytes;
};

constexpr std::array<DTypeInfo, kDTypeCount> kInfo = {{
    {"f32", 1, 4},       {"f16", 1, 2},        {"bf16", 1, 2},        {"q8_0", 32, 34},
    {"q4_0", 32, 18},    {"q4_1", 32, 20},     {"q5_0", 32, 22},      {"q5_1", 32, 24},
    {"q2_k", 256, 84},   {"q3_k", 256, 110},   {"q4_k", 256, 144},    {"q5_k", 256, 176},
    {"q6_k", 256, 210},  {"iq1_s", 256, 50},   {"iq1_m", 256, 56},    {"iq2_xxs", 256, 66},
    {"iq2_xs", 256, 74}, {"iq2_s", 256, 82},   {"iq3_xxs", 256, 98},  {"iq3_s", 256, 110},
    {"iq4_nl", 32, 18},  {"iq4_xs", 256, 136}, {"tq1_0", 256, 54},    {"tq2_0", 256, 66},
    {"mxfp4", 32, 17},   {"nvfp4", 64, 36},    {"nvfp4_f32", 64, 40}, {"f8", 128, 132},
    {"i8", 1, 1},        {"e4m3", 1, 1},
}};

const DTypeInfo& info(DType dtype) { return kInfo[static_cast<size_t>(dtype)]; }

}  // namespace

std::string_view dtype_name(DType dtype) { return info(dtype).name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (size_t i = 0; i < kInfo.size(); ++i) {
    if (kInfo[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int64_t block_elements(DType dtype) { return info(dtype).elements; }
int64_t block_bytes(DType dtype) { return info(dtype).bytes; }
int64_t row_header_bytes(DType dtype) {
  return dtype == DType::kI8 ? static_cast<int64_t>(sizeof(float)) : 0;
}

bool has_codes(DType dtype) {
  return dtype == DType::kI8 || (block_elements(dtype) > 1 && dtype != DType::kF8);
}

int64_t row_bytes(DType dtype, int64_t elements) {
  OUTRIDER_DCHECK(elements % block_elements(dtype) == 0);
  return row_header_bytes(dtype) + elements / block_elements(dtype) * block_bytes(dtype);
}

int64_t cached_head_bytes(DType dtype, int64_t head_dim) {
  constexpr int64_t kUnit = 32;
  return row_bytes(dtype, (head_dim + kUnit - 1) / kUnit * kUnit);
}

uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return sign | 0x7E00;   // NaN
  if (magnitude >= 0x477FF000) return sign | 0x7C00;  // rounds to 65536 or more: infinity
  if (magnitude < 0x38800000) {                       // subnormal or zero: multiples of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 0x1.0p24f;
    return sign | static_cast<uint16_t>(std::nearbyint(scaled));
  }
  const uint32_t rounded = magnitude + 0xFFF + ((magnitude >> 13) & 1);
  return sign | static_cast<uint16_t>((rounded >> 13) - (112u << 10));
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1F;
  const uint32_t mantissa = bits & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000 | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint8_t f32_to_e4m3(float value) {
  const auto sign = static_cast<uint8_t>(std::signbit(value) ? 0x80 : 0);
  const float magnitude = std::abs(value);
  if (!std::isfinite(value)) return sign | 0x7F;
  if (magnitude >= 448) return sign | 0x7E;
  if (magnitude < 0x1p-6F) {  // multiples of 2^-9, which the sum rounds to
    constexpr float kUnits = 0x1p14F;
    return sign | static_cast<uint8_t>(std::bit_cast<uint32_t>(magnitude + kUnits) -
                                       std::bit_cast<uint32_t>(kUnits));
  }
  const uint32_t bits = std::bit_cast<uint32_t>(magnitude);
  const uint32_t rounded = bits + 0x7FFFF + (bits >> 20 & 1);
  return sign | static_cast<uint8_t>((rounded >> 20) - (120U << 3));
}

// As half precision, the bits are 2^-8 times the number.
float e4m3_to_f32(uint8_t bits) {
  return 256 * f16_to_f32(static_cast<uint16_t>((bits & 0x80) << 8 | (bits & 0x7F) << 7));
}

}  // namespace outrider
