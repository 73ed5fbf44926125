// SPDX-License-Identifier: Apache-2.0
// Products of bf16 weights with inputs rounded to bf16, on panels of 16 output features: a lane of a vector
// holds two inputs of one feature. Unnamed namespace on purpose, see isa_ops.h.
//
// The sum of one output runs over the pairs of inputs in order, so its bits depend only on its own row, its
// own weights and k.
#pragma once

#include <limits>

#include "kernels/avx512/vector.h"
#include "kernels/isa_ops.h"
#include "kernels/simd/pair_inputs.h"

namespace outrider {
namespace {

// Only the second-level cache has room for as many reads under way as keep memory busy.
inline constexpr int64_t kPairPrefetchBytes = 8192;

// Inputs of some rows of one tile, [pair][width].
struct PairInputs {
  const Pair* first;  // of the first row
  int64_t width;
  int64_t row;  // number of the first row
};

// One of the groups of rows that pass the same panels.
struct RowGroup {
  int64_t index;
  int64_t count;
};

// The prefetches of a group of rows in each panel, `step` bytes further on with every vector that it
// multiplies. Several groups share the next panels among them, so that reading takes as long as all their
// products. A single one prefetches from close by; where its panels end, what follows all of them.
struct PairPrefetch {
  PairPrefetch(const RowGroup& group, int64_t panels, int64_t panel_bytes)
      : ahead(group.count == 1 ? kPairPrefetchBytes
                               : panels * panel_bytes + panel_bytes * group.index / group.count),
        step((static_cast<int64_t>(sizeof(__m512i)) + group.count - 1) / group.count),
        panel_end(group.count == 1 ? panel_bytes : std::numeric_limits<int64_t>::max()),
        beyond((panels - 1) * panel_bytes) {}

  int64_t take() {
    const int64_t at = ahead;
    ahead += step;
    return at < panel_end ? at : at + beyond;
  }

  int64_t ahead;  // bytes from the beginning of a panel
  int64_t step;
  int64_t panel_end;
  int64_t beyond;
};

// Loaded inputs serve all panels.
template <int kRows, int kPanels>
void pair_product(const LinearShare& share, int64_t feature, const PairInputs& inputs, RowGroup group) {
  const int64_t pairs = pairs_of(share.k);
  const std::byte* stored = share.weights + feature / kDotFeatures * share.panel_bytes;
  const auto* weights = reinterpret_cast<const __m512i*>(stored);
  PairPrefetch prefetch(group, kPanels, share.panel_bytes);
  __m512 sums[kPanels][kRows];
  for (auto& of_panel : sums) {
    for (__m512& sum : of_panel) sum = _mm512_setzero_ps();
  }
  const Pair* of_pair = inputs.first;
  for (int64_t pair = 0; pair < pairs; ++pair, of_pair += inputs.width) {
    const std::byte* ahead = stored + prefetch.take();
    __m512bh of_features[kPanels];
    for (int s = 0; s < kPanels; ++s) {
      __builtin_prefetch(ahead + s * share.panel_bytes, /*rw=*/0, /*locality=*/2);
      of_features[s] = (__m512bh)_mm512_loadu_si512(weights + s * pairs + pair);
    }
    for (int r = 0; r < kRows; ++r) {
      const auto of_row = (__m512bh)_mm512_set1_epi32(static_cast<int>(of_pair[r]));
      for (int s = 0; s < kPanels; ++s) sums[s][r] = _mm512_dpbf16_ps(sums[s][r], of_features[s], of_row);
    }
  }
  for (int s = 0; s < kPanels; ++s) {
    const int64_t first = feature + s * kDotFeatures;
    const int64_t features = share.n - first < kDotFeatures ? share.n - first : kDotFeatures;
    for (int r = 0; r < kRows; ++r) {
      Avx512::store_first(share.y + (inputs.row + r) * share.n + first, sums[s][r], features);
    }
  }
}

// At most kRows rows.
template <int kRows, int kPanels>
void few_pair_products(const LinearShare& share, int64_t feature, const PairInputs& inputs, RowGroup group,
                       int64_t rows) {
  if (rows == kRows) return pair_product<kRows, kPanels>(share, feature, inputs, group);
  if constexpr (kRows > 1) few_pair_products<kRows - 1, kPanels>(share, feature, inputs, group, rows);
}

// All rows, kMaxRows at a time, of whole groups of kPanels panels from `feature` on. Returns the first
// feature that is left.
template <int kMaxRows, int kPanels>
int64_t pair_panels(const LinearShare& share, int64_t feature) {
  constexpr int64_t kFeatures = kPanels * kDotFeatures;
  static_assert(kPairRows % kMaxRows == 0);
  const int64_t groups = (share.rows + kMaxRows - 1) / kMaxRows;
  for (; feature + (kFeatures - kDotFeatures) < share.features.end; feature += kFeatures) {
    const Pair* tile = reinterpret_cast<const Pair*>(share.packed_x);
    for (int64_t row = 0; row < share.rows; row += kPairRows) {
      const int64_t width = share.rows - row < kPairRows ? share.rows - row : kPairRows;
      for (int64_t r = 0; r < width; r += kMaxRows) {
        const int64_t rows = width - r < kMaxRows ? width - r : kMaxRows;
        const RowGroup group = {(row + r) / kMaxRows, groups};
        few_pair_products<kMaxRows, kPanels>(share, feature, {tile + r, width, row + r}, group, rows);
      }
      tile += width * pairs_of(share.k);
    }
  }
  return feature;
}

// The sums in registers hide the instruction's latency: few rows need many panels.
void pair_linear(const LinearShare& share) {
  int64_t feature = share.features.begin;
  if (share.rows <= 2) feature = pair_panels<2, 8>(share, feature);
  if (share.rows <= 4) feature = pair_panels<4, 4>(share, feature);
  feature = pair_panels<8, 2>(share, feature);
  pair_panels<8, 1>(share, feature);
}

// 32 inputs of one row, or the `left` there are and then zeros, as pairs `width` apart.
void pack_pairs(const float* x, int64_t left, int64_t width, Pair* to) {
  const __m512 low = Avx512::load_first(x, left < 16 ? left : 16);
  const __m512 high = Avx512::load_first(x + 16, left < 16 ? 0 : left < 32 ? left - 16 : 16);
  const auto pairs = (__m512i)_mm512_cvtne2ps_pbh(high, low);
  const __mmask16 there = Avx512::first(pairs_of(left < 32 ? left : 32));
  if (width == 1) return _mm512_mask_storeu_epi32(to, there, pairs);
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i places = _mm512_mullo_epi32(lane, _mm512_set1_epi32(static_cast<int>(width)));
  _mm512_mask_i32scatter_epi32(to, there, places, pairs, sizeof(Pair));
}

// Pairs that are only multiplied, see simd/peaks.h.
int64_t multiply_add_pairs(int64_t rounds) {
  __m512 sums[kPairRows];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  __m512i x = _mm512_set1_epi32(0x3F003F00);  // halves
  for (int64_t round = 0; round < rounds; ++round) {
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)x);
    asm volatile("" : "+v"(x));
  }
  for (__m512& sum : sums) asm volatile("" : : "v"(sum));
  return rounds * kPairRows * 32 * 2;
}

}  // namespace
}  // namespace outrider
