// SPDX-License-Identifier: Apache-2.0
#include "kernels/nibble_values.h"

#include <array>

#include "kernels/isa_ops.h"
#include "tensor/dtype.h"

namespace outrider {
namespace {

constexpr int kCodes = 16;
constexpr int kDroppedBits = 3;
constexpr int kScales = 1 << (16 - kDroppedBits);
static_assert(kCodes >> kDroppedBits == kNibbleValuesStride);

struct Table {
  alignas(64) std::array<uint16_t, (kScales + 1) * kCodes> values{};

  Table() {
    for (int scale = 0; scale < kScales; ++scale) {
      const float number = f16_to_f32(static_cast<uint16_t>(scale << kDroppedBits));
      for (int code = 0; code < kCodes; ++code) {
        values[static_cast<size_t>(scale * kCodes + code)] =
            f32_to_bf16(number * static_cast<float>(code - kNibbleZero));
      }
    }
  }
};

}  // namespace

const uint16_t* nibble_values() {
  static const Table table;
  return table.values.data();
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
