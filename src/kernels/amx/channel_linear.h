// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit tiles: inputs are the left operand, a panel of kChannels weights as it stands the right
// one. Sums are integers, so the bits equal simd/code_linear.h's. Unnamed namespace on purpose, see
// isa_ops.h.
#pragma once

#include <immintrin.h>

#include "kernels/amx/tiles.h"
#include "kernels/isa_ops.h"

namespace outrider {
namespace {

constexpr int64_t kByteTile = kTileRows * kChannelDepth;  // bytes; also of 16 features of weights
constexpr int64_t kChannelPrefetch = 1024;                // bytes

// Tile registers: 0-3 sums of (row tile, panel), 4-5 inputs, 6-7 weights.
TileConfig channel_config(int64_t rows) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.rows[tile] = static_cast<uint8_t>(tile >= 6 || rows > kTileRows ? kTileRows : rows);
    config.row_bytes[tile] = kTileRowBytes;
  }
  return config;
}

struct ChannelTiles {
  const LinearShare& share;
  int64_t steps;
  int64_t tile_bytes;  // of kInputRows rows of inputs, head included

  const std::byte* inputs(int64_t row) const { return share.packed_x + row / kInputRows * tile_bytes; }
  const std::byte* panel(int64_t feature) const {
    return share.weights + feature / kDotFeatures * share.panel_bytes;
  }
};

void fetch_channels_ahead(const std::byte* weights) {
  for (int64_t line = 0; line < kByteTile; line += 64) __builtin_prefetch(weights + kChannelPrefetch + line);
}

// Sums of kTiles row tiles and kPanels panels over all inputs, in registers.
template <int kTiles, int kPanels>
void multiply_channels(const ChannelTiles& tiles, int64_t row, int64_t feature, bool first) {
  zero_tile<0>();
  zero_tile<1>();
  zero_tile<2>();
  zero_tile<3>();
  const std::byte* inputs = tiles.inputs(row) + sizeof(InputRowsHead);
  const std::byte* weights = tiles.panel(feature) + kPanelHeader;
  for (int64_t step = 0; step < tiles.steps; ++step, inputs += kByteTile, weights += kByteTile) {
    load_tile<4>(inputs);
    load_tile<6>(weights);
    if (first) fetch_channels_ahead(weights);
    multiply_byte_tiles<0, 4, 6>();
    if constexpr (kTiles == 2) {
      load_tile<5>(inputs + tiles.tile_bytes);
      multiply_byte_tiles<2, 5, 6>();
    }
    if constexpr (kPanels == 2) {
      load_tile<7>(weights + tiles.share.panel_bytes);
      if (first) fetch_channels_ahead(weights + tiles.share.panel_bytes);
      multiply_byte_tiles<1, 4, 7>();
      if constexpr (kTiles == 2) multiply_byte_tiles<3, 5, 7>();
    }
  }
}

void store_channels(const ChannelTiles& tiles, int64_t row, int64_t feature, const int32_t* sums) {
  const LinearShare& share = tiles.share;
  const auto& head = *reinterpret_cast<const InputRowsHead*>(tiles.inputs(row));
  const __m512 scales = _mm512_loadu_ps(tiles.panel(feature));
  const int64_t features = share.n - feature;
  const auto mask = static_cast<__mmask16>(features >= 16 ? 0xFFFF : (1U << features) - 1);
  for (int64_t r = 0; r < kTileRows && row + r < share.rows; ++r) {
    const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(sums + r * 16));
    const __m512 y = _mm512_mul_ps(sum, _mm512_mul_ps(scales, _mm512_set1_ps(head.scales[r])));
    _mm512_mask_storeu_ps(share.y + (row + r) * share.n + feature, mask, y);
  }
}

template <int kTiles, int kPanels>
void channel_block(const ChannelTiles& tiles, int64_t row, int64_t feature, bool first) {
  alignas(64) int32_t sums[4][kTileRows * 16];
  multiply_channels<kTiles, kPanels>(tiles, row, feature, first);
  store_tile<0>(sums[0]);
  store_channels(tiles, row, feature, sums[0]);
  if constexpr (kPanels == 2) {
    store_tile<1>(sums[1]);
    store_channels(tiles, row, feature + kDotFeatures, sums[1]);
  }
  if constexpr (kTiles == 2) {
    store_tile<2>(sums[2]);
    store_channels(tiles, row + kTileRows, feature, sums[2]);
  }
  if constexpr (kTiles == 2 && kPanels == 2) {
    store_tile<3>(sums[3]);
    store_channels(tiles, row + kTileRows, feature + kDotFeatures, sums[3]);
  }
}

template <int kPanels>
void channel_panels(const ChannelTiles& tiles, int64_t feature) {
  for (int64_t row = 0; row < tiles.share.rows; row += 2 * kTileRows) {
    if (row + kTileRows < tiles.share.rows) {
      channel_block<2, kPanels>(tiles, row, feature, row == 0);
    } else {
      channel_block<1, kPanels>(tiles, row, feature, row == 0);
    }
  }
}

void channel_tile_linear(const LinearShare& share) {
  const int64_t steps = (share.k + kChannelDepth - 1) / kChannelDepth;
  const ChannelTiles tiles = {share, steps, static_cast<int64_t>(sizeof(InputRowsHead)) + steps * kByteTile};
  load_tile_config(channel_config(share.rows));
  int64_t feature = share.features.begin;
  for (; feature + kDotFeatures < share.features.end; feature += 2 * kDotFeatures)
    channel_panels<2>(tiles, feature);
  if (feature < share.features.end) channel_panels<1>(tiles, feature);
  release_tiles();
}

}  // namespace
}  // namespace outrider
