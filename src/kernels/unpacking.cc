// SPDX-License-Identifier: Apache-2.0
// The layouts of packing.cc, read back row by row.
#include <algorithm>
#include <cstring>

#include "kernels/packed_matrix.h"
#include "kernels/packing_layout.h"
#include "kernels/quants.h"

namespace outrider {
namespace {

template <int64_t kBytes>
void unpack_numbers(const PanelRow& row, float* out) {
  for (int64_t i = 0; i < row.k; ++i) {
    dequantize_row(row.dtype, row.panel + (i * kDotFeatures + row.index) * kBytes, out + i, 1);
  }
}

void unpack_f8(const PanelRow& row, float* out) {
  for (int64_t i = 0; i < row.k; ++i) {
    const std::byte* block = row.panel + i / kF8Block * kF8PanelBlock;
    float scale;
    std::memcpy(&scale, block + row.index * static_cast<int64_t>(sizeof(scale)), sizeof(scale));
    const auto bits = static_cast<uint8_t>(block[kF8Scales + i % kF8Block * kDotFeatures + row.index]);
    out[i] = scale / kF8Unit * e4m3_to_f32(bits);
  }
}

void unpack_pairs(const PanelRow& row, float* out) {
  const std::byte* from = row.panel + row.index * 4;
  for (int64_t i = 0; i < row.k; i += 2, from += kDotFeatures * 4) {
    dequantize_row(row.dtype, from, out + i, std::min<int64_t>(2, row.k - i));
  }
}

void unpack_tile_row(const PanelRow& row, float* out) {
  constexpr int64_t kTileBytes = 16 * kTileDepth * 2;
  const std::byte* from = row.panel + row.index / 16 * kTileBytes + row.index % 16 * kTileDepth * 2;
  for (int64_t i = 0; i < row.k; i += kTileDepth, from += 2 * kTileBytes) {
    dequantize_row(row.dtype, from, out + i, std::min(kTileDepth, row.k - i));
  }
}

void unpack_channel(const PanelRow& row, float* out) {
  float scale;
  std::memcpy(&scale, row.panel + row.index * static_cast<int64_t>(sizeof(float)), sizeof(scale));
  const std::byte* from = row.panel + kPanelHeader + row.index * 4;
  for (int64_t i = 0; i < row.k; ++i) {
    out[i] = scale * static_cast<float>(static_cast<int8_t>(from[i / 4 * kDotFeatures * 4 + i % 4]));
  }
}

// The places of scale, min and code of an input in a block of 16 features.
struct CodePlace {
  int64_t scale;  // index of a half-precision number; the mins have the same order
  int64_t code;   // index of a byte within the codes
  int shift;      // of the nibble within its byte, 4 or 0
};

// `i`: input within its block; `r`: feature within its 16.
CodePlace dot_place(const CodeType& type, int64_t i, int64_t r) {
  const int64_t group = i / type.group;
  const int64_t within = i % type.group;
  const int64_t group_bytes = type.group * kDotFeatures * type.bits / 8;
  const int64_t half = type.group / 2;
  const int64_t byte = type.bits == 8 ? within : within % half;
  return {group * kDotFeatures + r, group * group_bytes + byte / 4 * kDotFeatures * 4 + r * 4 + byte % 4,
          type.bits == 4 && within >= half ? 4 : 0};
}

CodePlace tile_place(const CodeType& type, int64_t i, int64_t r) {
  const int64_t scale = r * (kCodeBlock / type.group) + i / type.group;
  if (type.bits == 8) return {scale, r * kCodeBlock + i, 0};
  return {scale, r * kCodeBlock / 2 + i % 32 * 2 + i / 64, i / 32 % 2 == 0 ? 0 : 4};
}

void unpack_codes(const PanelRow& row, bool tiles, float* out) {
  const CodeType type = code_type(row.dtype);
  const int64_t scale_bytes = 16 * (kCodeBlock / type.group) * 2;
  const int8_t* numbers = nibble_numbers(type.values);
  float unit;
  std::memcpy(&unit, row.panel, sizeof(unit));
  const auto half_at = [unit](const std::byte* from) {
    uint16_t bits;
    std::memcpy(&bits, from, sizeof(bits));
    return f16_to_f32(bits) * unit;
  };
  for (int64_t i = 0; i < row.k; ++i) {
    const int64_t block = tiles ? i / kCodeBlock * 2 + row.index / 16 : i / kCodeBlock;
    const std::byte* from = row.panel + kPanelHeader + block * code_block_bytes(type);
    const CodePlace place =
        tiles ? tile_place(type, i % kCodeBlock, row.index % 16) : dot_place(type, i % kCodeBlock, row.index);
    const float scale = half_at(from + place.scale * 2);
    const float min = type.has_min ? half_at(from + scale_bytes + place.scale * 2) : 0;
    const std::byte stored = from[(type.has_min ? 2 : 1) * scale_bytes + place.code];
    const int nibble = static_cast<int>(stored) >> place.shift & 15;
    const int number = type.bits == 8 ? static_cast<int8_t>(stored) : type.has_min ? nibble : numbers[nibble];
    out[i] = scale * static_cast<float>(number) - min;
  }
}

}  // namespace

void unpack_row(const PackedMatrix& packed, int64_t row, float* out) {
  const int64_t panel = row / packed.panel_features;
  // The data is only read from here on.
  auto* bytes = const_cast<std::byte*>(packed.data.data()) + panel * packed.panel_bytes;
  const PanelRow place = {packed.dtype, packed.k, nullptr, bytes, row % packed.panel_features};
  switch (packed.layout) {
    case WeightLayout::kRows:
      return dequantize_row(packed.dtype, bytes, out, packed.k);
    case WeightLayout::kPanels:
      if (packed.dtype == DType::kF8) return unpack_f8(place, out);
      return packed.dtype == DType::kF32 ? unpack_numbers<4>(place, out) : unpack_numbers<2>(place, out);
    case WeightLayout::kPairs:
      return unpack_pairs(place, out);
    case WeightLayout::kTiles:
      return unpack_tile_row(place, out);
    case WeightLayout::kChannels:
      return unpack_channel(place, out);
    case WeightLayout::kDotNibbles:
    case WeightLayout::kDotBytes:
      return unpack_codes(place, false, out);
    case WeightLayout::kTileNibbles:
    case WeightLayout::kTileBytes:
      return unpack_codes(place, true, out);
  }
}

}  // namespace outrider
