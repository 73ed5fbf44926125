// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit tiles with groups of codes, for many rows; rows that fill no tile go through vectors.
// Sums within a group are integers and groups are added as simd/code_linear.h adds them, so the bits are the
// same. Unnamed namespace on purpose, see isa_ops.h.
#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/isa_ops.h"
#include "kernels/simd/code_linear.h"

namespace outrider {
namespace {

// Sums of a group are added two groups later, when they have left the store buffer.
constexpr int64_t kGroupsLater = 2;
constexpr int64_t kStoredGroups = 4;  // a power of two

// Tile registers: sums and inputs of 16 rows 0 and 1, of 8 rows 2 and 3; a group of weights 4.
TileConfig group_config() {
  constexpr int kFours = kInputGroup / 4;
  TileConfig config;
  for (int tile = 0; tile < 5; ++tile) {
    config.rows[tile] = static_cast<uint8_t>(tile == 0 || tile == 1 ? kTileRows : 8);
    config.row_bytes[tile] = static_cast<uint16_t>(tile % 2 == 1 ? kInputGroup : kTileRowBytes);
  }
  config.rows[4] = kFours;
  return config;
}

struct GroupPanel {
  const LinearShare& share;
  const std::byte* codes;  // first block: scales of its groups, then their codes
  float unit;
  int64_t feature;

  static constexpr int64_t kGroups = kCodeBlock / kInputGroup;
  static constexpr int64_t kGroupBytes = kInputGroup * kDotFeatures;
  static constexpr int64_t kScaleBytes = kGroups * kDotFeatures * 2;

  const std::byte* block(int64_t group) const {
    return codes + group / kGroups * (kScaleBytes + kGroups * kGroupBytes);
  }
  const std::byte* codes_of(int64_t group) const {
    return block(group) + kScaleBytes + group % kGroups * kGroupBytes;
  }
  __m512 scales_of(int64_t group) const {
    const std::byte* halves = block(group) + group % kGroups * kDotFeatures * 2;
    return _mm512_mul_ps(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves))),
                         _mm512_set1_ps(unit));
  }
};

template <int kRows, int kSums, int kInputs>
void group_rows(const GroupPanel& panel, int64_t row) {
  const LinearShare& share = panel.share;
  const int64_t groups = share.k / kInputGroup;
  const int64_t tile = row / kInputRows * kInputRows;
  const int64_t width = share.rows - tile < kInputRows ? share.rows - tile : kInputRows;
  const auto* inputs = reinterpret_cast<const InputGroup*>(share.packed_x) + tile * groups + (row - tile);
  alignas(64) int32_t sums[kStoredGroups][kRows * 16];
  // Loops over y are unrolled before y is given its place, so that it lies in registers.
  __m512 y[kRows];
#pragma GCC unroll 16
  for (__m512& sum : y) sum = _mm512_setzero_ps();
  const auto add_scaled = [&](int64_t group) __attribute__((always_inline)) {
    const __m512 scales = panel.scales_of(group);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(sums[group % kStoredGroups] + r * 16));
      const __m512 scale = _mm512_mul_ps(scales, _mm512_set1_ps(inputs[group * width + r].scale));
      y[r] = _mm512_fmadd_ps(sum, scale, y[r]);
    }
  };
  for (int64_t group = 0; group < groups; ++group) {
    const std::byte* weights = panel.codes_of(group);
    if (row == 0) {
      for (int64_t line = 0; line < GroupPanel::kGroupBytes; line += 64)
        __builtin_prefetch(weights + 4096 + line);
    }
    zero_tile<kSums>();
    load_tile<kInputs>(inputs[group * width].codes, sizeof(InputGroup));
    load_tile<4>(weights);
    multiply_byte_tiles<kSums, kInputs, 4>();
    store_tile<kSums>(sums[group % kStoredGroups]);
    if (group >= kGroupsLater) add_scaled(group - kGroupsLater);
  }
  for (int64_t group = groups < kGroupsLater ? 0 : groups - kGroupsLater; group < groups; ++group)
    add_scaled(group);
  const int64_t features = share.n - panel.feature;
  const auto mask = static_cast<__mmask16>(features >= 16 ? 0xFFFF : (1U << features) - 1);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    _mm512_mask_storeu_ps(share.y + (row + r) * share.n + panel.feature, mask, y[r]);
  }
}

// Groups of 32 without mins.
template <typename V>
void group_linear(const LinearShare& share) {
  load_tile_config(group_config());
  for (int64_t feature = share.features.begin; feature < share.features.end; feature += kDotFeatures) {
    const std::byte* stored = share.weights + feature / kDotFeatures * share.panel_bytes;
    float unit;
    __builtin_memcpy(&unit, stored, sizeof(unit));
    const GroupPanel panel = {share, stored + kPanelHeader, unit, feature};
    int64_t row = 0;
    for (; row + 16 <= share.rows; row += 16) group_rows<16, 0, 1>(panel, row);
    if (row + 8 <= share.rows) {
      group_rows<8, 2, 3>(panel, row);
      row += 8;
    }
    simd::code_panels<V, simd::Bytes<32, false>>({share, stored, feature}, 1, {row, share.rows});
  }
  release_tiles();
}

}  // namespace
}  // namespace outrider
