// SPDX-License-Identifier: Apache-2.0
// Sizes and configuration of AMX tiles. Unnamed namespace on purpose, see isa_ops.h.
#pragma once

#include <cstdint>

namespace outrider {
namespace {

constexpr int kTileRows = 16;
constexpr int kTileRowBytes = 64;

// Palette 1 of Intel's manual, volume 1, chapter 18.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

}  // namespace
}  // namespace outrider
