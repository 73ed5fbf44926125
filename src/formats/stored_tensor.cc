// SPDX-License-Identifier: Apache-2.0
#include "formats/stored_tensor.h"

#include <algorithm>
#include <array>

namespace outrider {
namespace {

constexpr std::array<StoredType, 20> kStoredTypes = {{
    {"F32", 32, DType::kF32},     {"F16", 16, DType::kF16},     {"BF16", 16, DType::kBF16},
    {"F64", 64, std::nullopt},    {"C64", 64, std::nullopt},    {"I64", 64, std::nullopt},
    {"U64", 64, std::nullopt},    {"I32", 32, std::nullopt},    {"U32", 32, std::nullopt},
    {"I16", 16, std::nullopt},    {"U16", 16, std::nullopt},    {"I8", 8, std::nullopt},
    {"U8", 8, std::nullopt},      {"BOOL", 8, std::nullopt},    {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt}, {"F8_E8M0", 8, std::nullopt}, {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt}, {"F4", 4, std::nullopt},
}};

}  // namespace

const StoredType* find_stored_type(std::string_view name) {
  const auto found = std::ranges::find(kStoredTypes, name, &StoredType::name);
  return found == kStoredTypes.end() ? nullptr : &*found;
}

std::optional<uint64_t> stored_bytes(const Shape& shape, uint64_t bits_per_element) {
  uint64_t bits = bits_per_element;
  for (const int64_t dimension : shape) {
    if (__builtin_mul_overflow(bits, static_cast<uint64_t>(dimension), &bits)) return std::nullopt;
  }
  return bits % 8 == 0 ? std::optional(bits / 8) : std::nullopt;
}

}  // namespace outrider
