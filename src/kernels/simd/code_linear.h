// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit inputs with weights stored as codes, on panels of 16 output features: a lane of a vector
// holds four inputs of one feature.
//
// Sums within a group (or, for kChannels, over all inputs) are sums of integers, exact in any order; groups
// are added in f32, in order. Therefore the bits of an output depend only on its own row and weights, and
// agree between instruction sets.
#pragma once

#include "kernels/isa_ops.h"

namespace outrider::simd {

template <typename V>
typename V::Ints four_inputs(const int8_t* codes) {
  int32_t four;
  __builtin_memcpy(&four, codes, sizeof(four));
  return V::all_ints(four);
}

// Integer sums of kRows rows over one group of weights, at input `first` of its inputs' group. Without mins,
// the code kNibbleZero stands for zero.
template <int kGroupSize, bool kMin>
struct Nibbles {
  static constexpr bool kHasMin = kMin;
  static constexpr int kGroup = kGroupSize;
  static constexpr int kBytes = kGroup * kDotFeatures / 2;
  static_assert(kMin || kGroup == kInputGroup);

  template <typename V, int kRows>
  static void products(const std::byte* weights, const InputGroup* x, int first, const int8_t*,
                       typename V::Ints* sums) {
    const auto start = [x](int r) { return kMin ? 0 : x[r].zero_sum; };
    for (int r = 0; r < kRows; ++r) sums[r] = V::begin_nibble_sums(start(r));
    for (int v = 0; v < kGroup / 8; ++v) {
      __builtin_prefetch(weights + v * 64 + kPrefetchBytes);
      const auto both = V::load_ints(weights + v * 64);
      const auto low = V::low_nibbles(both);
      const auto high = V::high_nibbles(both);
      for (int r = 0; r < kRows; ++r) {
        const int8_t* codes = x[r].codes + first + 4 * v;
        sums[r] = V::add_nibble_products(sums[r], low, four_inputs<V>(codes));
        sums[r] = V::add_nibble_products(sums[r], high, four_inputs<V>(codes + kGroup / 2));
      }
    }
    for (int r = 0; r < kRows; ++r) sums[r] = V::end_nibble_sums(sums[r], start(r));
  }
};

// Where sums of V::add_byte_products() begin, so that what it adds to the products is taken away.
template <typename V, int kGroup, int kRows>
void begin_byte_sums(const InputGroup* x, int first, typename V::Ints* sums) {
  for (int r = 0; r < kRows; ++r) {
    const int32_t start = kGroup == kInputGroup ? x[r].byte_zero_sum : x[r].byte_zero_sums[first / 16];
    sums[r] = V::all_ints(V::kByteOffset == 0 ? 0 : start);
  }
}

// Codes of four bits, each of which stands for one of the sixteen 8-bit `numbers`.
template <int kGroupSize>
struct TableNibbles {
  static constexpr bool kHasMin = false;
  static constexpr int kGroup = kGroupSize;
  static constexpr int kBytes = kGroup * kDotFeatures / 2;

  template <typename V, int kRows>
  static void products(const std::byte* weights, const InputGroup* x, int first, const int8_t* numbers,
                       typename V::Ints* sums) {
    const auto table = V::byte_weights(V::sixteen_bytes(numbers));
    begin_byte_sums<V, kGroup, kRows>(x, first, sums);
    for (int v = 0; v < kGroup / 8; ++v) {
      __builtin_prefetch(weights + v * 64 + kPrefetchBytes);
      const auto both = V::load_ints(weights + v * 64);
      const auto low = V::look_up(table, V::low_nibbles(both));
      const auto high = V::look_up(table, V::high_nibbles(both));
      for (int r = 0; r < kRows; ++r) {
        const int8_t* codes = x[r].codes + first + 4 * v;
        sums[r] = V::add_byte_products(sums[r], low, four_inputs<V>(codes));
        sums[r] = V::add_byte_products(sums[r], high, four_inputs<V>(codes + kGroup / 2));
      }
    }
  }
};

template <int kGroupSize, bool kMin>
struct Bytes {
  static constexpr bool kHasMin = kMin;
  static constexpr int kGroup = kGroupSize;
  static constexpr int kBytes = kGroup * kDotFeatures;

  template <typename V, int kRows>
  static void products(const std::byte* weights, const InputGroup* x, int first, const int8_t*,
                       typename V::Ints* sums) {
    begin_byte_sums<V, kGroup, kRows>(x, first, sums);
    for (int v = 0; v < kGroup / 4; ++v) {
      __builtin_prefetch(weights + v * 64 + kPrefetchBytes);
      const auto w = V::byte_weights(V::load_ints(weights + v * 64));
      for (int r = 0; r < kRows; ++r) {
        sums[r] = V::add_byte_products(sums[r], w, four_inputs<V>(x[r].codes + first + 4 * v));
      }
    }
  }
};

// The sum of a group's inputs, which its min is multiplied with.
template <typename V, int kGroup>
float scaled_sum(const InputGroup& x, int first) {
  return kGroup == kInputGroup ? x.scaled_sum : x.scale * static_cast<float>(x.sums[first / 16]);
}

struct CodePanel {
  const LinearShare& share;
  const std::byte* codes;  // first block
  float unit;
  int64_t feature;
};

// Lanes [lane, lane + V::kLanes) of a panel for rows [row, row + kRows). Adds a group's integer sums, times
// the scales of both sides, to the outputs' sums, and subtracts the mins.
template <typename V, typename Codes, int kRows>
void code_rows(const CodePanel& panel, int64_t row, int lane) {
  constexpr int64_t kGroups = kCodeBlock / Codes::kGroup;
  constexpr int64_t kScaleBytes = (Codes::kHasMin ? 2 : 1) * kGroups * kDotFeatures * 2;
  const LinearShare& share = panel.share;
  const auto* inputs = reinterpret_cast<const InputGroup*>(share.packed_x) + row;
  typename V::Floats y[kRows];
  for (auto& sum : y) sum = V::all(0);
  const std::byte* block = panel.codes;
  for (int64_t begin = 0; begin < share.k; begin += kCodeBlock) {
    const int64_t left = share.k - begin;
    const int64_t groups = left < kCodeBlock ? left / Codes::kGroup : kGroups;
    const std::byte* codes = block + kScaleBytes + lane * 4;
    for (int64_t g = 0; g < groups; ++g, codes += Codes::kBytes) {
      const int64_t first = begin + g * Codes::kGroup;
      const InputGroup* x = inputs + first / kInputGroup * share.rows;
      typename V::Ints sums[kRows];
      const auto within = static_cast<int>(first % kInputGroup);
      Codes::template products<V, kRows>(codes, x, within, share.code_numbers, sums);
      const auto* scales = reinterpret_cast<const uint8_t*>(block) + (g * kDotFeatures + lane) * 2;
      const auto scale = V::mul(V::load_halves(scales), V::all(panel.unit));
      for (int r = 0; r < kRows; ++r) {
        y[r] = V::multiply_add(V::to_floats(sums[r]), V::mul(scale, V::all(x[r].scale)), y[r]);
      }
      if constexpr (Codes::kHasMin) {
        const auto negative_min = V::mul(V::load_halves(scales + kScaleBytes / 2), V::all(-panel.unit));
        for (int r = 0; r < kRows; ++r) {
          y[r] = V::multiply_add(negative_min, V::all(scaled_sum<V, Codes::kGroup>(x[r], within)), y[r]);
        }
      }
    }
    block += kScaleBytes + kGroups * Codes::kBytes;
  }
  const int64_t features = share.n - panel.feature - lane;
  for (int r = 0; r < kRows && features > 0; ++r) {
    V::store_first(share.y + (row + r) * share.n + panel.feature + lane, y[r],
                   features < V::kLanes ? features : V::kLanes);
  }
}

template <typename V, typename Codes, int kRows>
void code_rows_from(const CodePanel& panel, int64_t row) {
  for (; row + kRows <= panel.share.rows; row += kRows) {
    for (int lane = 0; lane < kDotFeatures; lane += V::kLanes) code_rows<V, Codes, kRows>(panel, row, lane);
  }
  if constexpr (kRows > 1) {
    if (row < panel.share.rows) code_rows_from<V, Codes, kRows - 1>(panel, row);
  }
}

template <typename V, typename Codes>
void code_linear(const LinearShare& share) {
  for (int64_t feature = share.features.begin; feature < share.features.end; feature += kDotFeatures) {
    const std::byte* panel = share.weights + feature / kDotFeatures * share.panel_bytes;
    float unit;
    __builtin_memcpy(&unit, panel, sizeof(unit));
    code_rows_from<V, Codes, V::kDotRows>({share, panel + kPanelHeader, unit, feature}, 0);
  }
}

// The counterpart of code_rows() with one scale per feature and per row.
template <typename V, int kRows>
void channel_rows(const LinearShare& share, const std::byte* panel, int64_t feature, int64_t row, int lane) {
  const int64_t steps = (share.k + kChannelDepth - 1) / kChannelDepth;
  const int64_t tile_bytes = static_cast<int64_t>(sizeof(InputRowsHead)) + steps * kInputRows * kChannelDepth;
  const InputRowsHead* heads[kRows];
  const int8_t* codes[kRows];
  typename V::Ints sums[kRows];
  for (int r = 0; r < kRows; ++r) {
    const std::byte* tile = share.packed_x + (row + r) / kInputRows * tile_bytes;
    heads[r] = reinterpret_cast<const InputRowsHead*>(tile);
    codes[r] = reinterpret_cast<const int8_t*>(tile + sizeof(InputRowsHead)) +
               (row + r) % kInputRows * kChannelDepth;
    sums[r] = V::all_ints(0);
  }
  const std::byte* weights = panel + kPanelHeader + lane * 4;
  for (int64_t step = 0; step < steps; ++step) {
    for (int v = 0; v < kChannelDepth / 4; ++v, weights += 64) {
      __builtin_prefetch(weights + kPrefetchBytes);
      const auto w = V::byte_weights(V::load_ints(weights));
      for (int r = 0; r < kRows; ++r) {
        const int8_t* four = codes[r] + step * kInputRows * kChannelDepth + 4 * v;
        sums[r] = V::add_byte_products(sums[r], w, four_inputs<V>(four));
      }
    }
  }
  const auto scale = V::load(reinterpret_cast<const float*>(panel) + lane);
  const int64_t features = share.n - feature - lane;
  for (int r = 0; r < kRows && features > 0; ++r) {
    const int64_t place = (row + r) % kInputRows;
    const auto sum = V::sub(sums[r], V::all_ints(V::kByteOffset * heads[r]->sums[place]));
    const auto y = V::mul(V::to_floats(sum), V::mul(scale, V::all(heads[r]->scales[place])));
    V::store_first(share.y + (row + r) * share.n + feature + lane, y,
                   features < V::kLanes ? features : V::kLanes);
  }
}

template <typename V, int kRows>
void channel_rows_from(const LinearShare& share, const std::byte* panel, int64_t feature, int64_t row) {
  for (; row + kRows <= share.rows; row += kRows) {
    for (int lane = 0; lane < kDotFeatures; lane += V::kLanes)
      channel_rows<V, kRows>(share, panel, feature, row, lane);
  }
  if constexpr (kRows > 1) {
    if (row < share.rows) channel_rows_from<V, kRows - 1>(share, panel, feature, row);
  }
}

template <typename V>
void channel_linear(const LinearShare& share) {
  for (int64_t feature = share.features.begin; feature < share.features.end; feature += kDotFeatures) {
    const std::byte* panel = share.weights + feature / kDotFeatures * share.panel_bytes;
    channel_rows_from<V, V::kDotRows>(share, panel, feature, 0);
  }
}

}  // namespace outrider::simd
