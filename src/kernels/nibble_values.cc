// SPDX-License-Identifier: Apache-2.0
#include "kernels/nibble_values.h"

#include <array>
#include <utility>

#include "tensor/dtype.h"

namespace outrider {
namespace {

constexpr int kCodes = 16;
constexpr int kDroppedBits = 3;
constexpr int kScales = 1 << (16 - kDroppedBits);
static_assert(kCodes >> kDroppedBits == kTileNumbersStride);

constexpr int kSets = static_cast<int>(NibbleValues::kOdd) + 1;

alignas(16) constexpr int8_t kNumbers[kSets][kCodes] = {
    {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7},
    {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113},
    {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12},
    {-7, 1, 9, 0, -9, -1, 7},
    {8, 25, 43, 0, -8, -25, -43},
    {4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62},
    {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15},
};

struct Table {
  alignas(64) std::array<uint16_t, (kScales + 1) * kCodes> numbers{};

  explicit Table(NibbleValues set) {
    const int8_t* of_code = nibble_numbers(set);
    for (int scale = 0; scale < kScales; ++scale) {
      const float number = f16_to_f32(static_cast<uint16_t>(scale << kDroppedBits));
      for (int code = 0; code < kCodes; ++code) {
        numbers[static_cast<size_t>(scale * kCodes + code)] =
            f32_to_bf16(number * static_cast<float>(of_code[code]));
      }
    }
  }
};

// Tables are made when they are first needed.
template <int kSet>
const uint16_t* numbers_of() {
  static const Table table(static_cast<NibbleValues>(kSet));
  return table.numbers.data();
}

template <int... kSet>
constexpr auto tables_of(std::integer_sequence<int, kSet...>) {
  return std::array{numbers_of<kSet>...};
}

}  // namespace

const int8_t* nibble_numbers(NibbleValues values) { return kNumbers[static_cast<size_t>(values)]; }

const uint16_t* tile_numbers(NibbleValues values) {
  static constexpr auto kTables = tables_of(std::make_integer_sequence<int, kSets>());
  return kTables[static_cast<size_t>(values)]();
}

uint16_t table_scale(uint16_t half) {
  constexpr int kDropped = (1 << kDroppedBits) - 1;
  constexpr uint16_t kInfinity = 0x7C00;
  const int magnitude = half & 0x7FFF;
  const int sign = half & 0x8000;
  if (magnitude > kInfinity) return static_cast<uint16_t>((half & ~kDropped) | 0x0200);
  const int odd = magnitude >> kDroppedBits & 1;
  const int rounded = (magnitude + kDropped / 2 + odd) & ~kDropped;
  const bool overflows = rounded >= kInfinity && magnitude < kInfinity;
  return static_cast<uint16_t>(sign | (overflows ? rounded - kDropped - 1 : rounded));
}

}  // namespace outrider
