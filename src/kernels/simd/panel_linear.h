// SPDX-License-Identifier: Apache-2.0
// Products with plain numbers on panels of 16 output features: a stretch of weights serves all rows of a
// chunk and is converted on the way, so that arithmetic overlaps with reading.
//
// The sum of one output: inputs are cut into stretches of kStretch; within one, input i belongs to chain
// i % V::kChains; chains run in order and are added in pairs; stretches are added in order. Therefore
// the bits of an output depend only on its own row, its own weights and k.
#pragma once

#include "kernels/isa_ops.h"

namespace outrider::simd {

inline constexpr int64_t kStretch = 256;
inline constexpr int64_t kRowsOfChunk = 128;  // rows that share a stretch while it is in the nearest cache
// Rows as few as these have too few sums of one panel to fill the multipliers' pipelines; V::kPanelsOfFewRows
// panels at once do.
inline constexpr int kFewRows = 2;

// Readers of weights; f32 needs no conversion.
template <typename V>
struct F32Weights {
  static constexpr int64_t kBytes = 4;
  static typename V::Floats load(const uint8_t* p) { return V::load(reinterpret_cast<const float*>(p)); }
};

template <typename V>
struct F16Weights {
  static constexpr int64_t kBytes = 2;
  static typename V::Floats load(const uint8_t* p) { return V::load_halves(p); }
};

template <typename V>
struct BF16Weights {
  static constexpr int64_t kBytes = 2;
  static typename V::Floats load(const uint8_t* p) { return V::load_bf16(p); }
};

// Few rows take less time than reading, so that the first-level cache keeps up. Beside the products of more
// rows, only the second-level cache has as many reads under way as keep memory busy.
template <bool kIsNear>
void prefetch_weights(const uint8_t* at) {
  if constexpr (kIsNear) {
    __builtin_prefetch(at);
  } else {
    __builtin_prefetch(at, /*rw=*/0, /*locality=*/2);
  }
}

struct Stretch {
  const uint8_t* weights;  // [inputs, 16] of the first panel
  int64_t panel_bytes;     // from panel to panel
  const float* x;          // first input of the first row
  int64_t inputs;
  int64_t k;    // from row to row of x
  float* sums;  // [panels, rows of a chunk, 16]
  // Each panel is prefetched: as many inputs, kStretch further on. Where the panels end, that is the
  // beginning of those that follow all of them. Every group of rows prefetches its part, so that reading
  // takes as long as all products.
  int64_t ahead;      // bytes from `weights` to what the first input of this group prefetches
  int64_t step;       // bytes from input to input
  int64_t panel_end;  // bytes from `weights` to the end of the first panel
};

template <typename V, typename Weights, int kPanels, int kRows, bool kIsNear>
struct StretchSums {
  static constexpr int kPartsOfPanel = kDotFeatures / V::kLanes, kParts = kPanels * kPartsOfPanel;
  static constexpr bool kFitRegisters = V::kChains * kRows * kParts <= 16;
  using Chain = typename V::Floats[kRows][kParts];

  const Stretch& stretch;
  int64_t row;

  static void clear(Chain& sums) {
    for (auto& of_row : sums) {
      for (auto& part : of_row) part = V::all(0);
    }
  }
  // `number` counts the inputs of a call.
  void add_input(int64_t i, int64_t number, Chain& sums) const __attribute__((always_inline)) {
    const float* x = stretch.x + row * stretch.k + i;
    const uint8_t* of_input = stretch.weights + i * kDotFeatures * Weights::kBytes;
    int64_t ahead = stretch.ahead + number * stretch.step;
    if (kPanels > 1 && ahead >= stretch.panel_end) ahead += (kPanels - 1) * stretch.panel_bytes;
    for (int panel = 0; panel < kPanels; ++panel)
      prefetch_weights<kIsNear>(stretch.weights + ahead + panel * stretch.panel_bytes);
    for (int part = 0; part < kParts; ++part) {
      const auto weights = Weights::load(of_input + part / kPartsOfPanel * stretch.panel_bytes +
                                         part % kPartsOfPanel * V::kLanes * Weights::kBytes);
      for (int r = 0; r < kRows; ++r)
        sums[r][part] = V::multiply_add(V::all(x[r * stretch.k]), weights, sums[r][part]);
    }
  }
  // Adds the chains in pairs, and their sum to the outputs' sums.
  void finish(Chain (&sums)[V::kChains]) const {
    for (int r = 0; r < kRows; ++r) {
      for (int part = 0; part < kParts; ++part) {
        for (int chains = V::kChains / 2; chains > 0; chains /= 2) {
          for (int chain = 0; chain < chains; ++chain)
            sums[chain][r][part] = V::add(sums[chain][r][part], sums[chain + chains][r][part]);
        }
        float* total = stretch.sums + (part / kPartsOfPanel * kRowsOfChunk + row + r) * kDotFeatures +
                       part % kPartsOfPanel * V::kLanes;
        V::store(total, V::add(V::load(total), sums[0][r][part]));
      }
    }
  }
};

// Adds one stretch to the sums of kRows rows, from `row` on, of kPanels panels side by side. Where the sums
// of all chains do not fit the register file, one chain follows the other.
template <typename V, typename Weights, int kPanels, int kRows, bool kIsNear>
void add_stretch(const Stretch& stretch, int64_t row) {
  using Sums = StretchSums<V, Weights, kPanels, kRows, kIsNear>;
  const Sums of_rows = {stretch, row};
  typename Sums::Chain sums[V::kChains];
  if constexpr (Sums::kFitRegisters) {
    for (auto& chain : sums) Sums::clear(chain);
    int64_t i = 0;
    for (; i + V::kChains <= stretch.inputs; i += V::kChains) {
      for (int chain = 0; chain < V::kChains; ++chain) of_rows.add_input(i + chain, i + chain, sums[chain]);
    }
    for (int chain = 0; chain < V::kChains; ++chain) {
      if (i + chain < stretch.inputs) of_rows.add_input(i + chain, i + chain, sums[chain]);
    }
  } else {
    int64_t number = 0;
    for (int chain = 0; chain < V::kChains; ++chain) {
      typename Sums::Chain own;
      Sums::clear(own);
      for (int64_t i = chain; i < stretch.inputs; i += V::kChains) of_rows.add_input(i, number++, own);
      __builtin_memcpy(sums[chain], own, sizeof(own));
    }
  }
  of_rows.finish(sums);
}

template <typename V, typename Weights, int kPanels, int kRows, bool kIsNear>
void add_stretch_to(const Stretch& stretch, int64_t row, int64_t rows) {
  if (rows == kRows) return add_stretch<V, Weights, kPanels, kRows, kIsNear>(stretch, row);
  if constexpr (kRows > 1) add_stretch_to<V, Weights, kPanels, kRows - 1, kIsNear>(stretch, row, rows);
}

// Divides rows into groups of similar size, because weights are converted once per group.
template <typename V, typename Weights, int kPanels, int kMax>
void add_stretch_to_rows(Stretch stretch, int64_t rows) {
  int64_t row = 0;
  int64_t groups = (rows + kMax - 1) / kMax;
  stretch.step = (stretch.step + groups - 1) / groups;  // rounded up: the parts leave nothing out
  const int64_t part = stretch.step * stretch.inputs;
  for (; groups > 0; --groups, stretch.ahead += part) {
    const int64_t count = (rows - row + groups - 1) / groups;
    add_stretch_to<V, Weights, kPanels, kMax, (kMax <= kFewRows)>(stretch, row, count);
    row += count;
  }
}

template <typename V>
void store_panel(const LinearShare& share, int64_t feature, Range rows, const float* sums) {
  const int64_t features = share.n - feature < kDotFeatures ? share.n - feature : kDotFeatures;
  for (int64_t r = rows.begin; r < rows.end; ++r, sums += kDotFeatures) {
    float* y = share.y + r * share.n + feature;
    for (int64_t lane = 0; lane < features; lane += V::kLanes) {
      const int64_t left = features - lane;
      V::store_first(y + lane, V::load(sums + lane), left < V::kLanes ? left : V::kLanes);
    }
  }
}

template <typename V, typename Weights, int kPanels, int kMax>
void panel_product(const LinearShare& share, int64_t feature, Range rows) {
  alignas(64) float sums[kPanels * kRowsOfChunk * kDotFeatures];
  const auto* panel =
      reinterpret_cast<const uint8_t*>(share.weights) + feature / kDotFeatures * share.panel_bytes;
  const int64_t row_count = rows.end - rows.begin;
  for (int s = 0; s < kPanels; ++s) {
    for (int64_t i = 0; i < row_count * kDotFeatures; ++i) sums[s * kRowsOfChunk * kDotFeatures + i] = 0;
  }
  for (int64_t begin = 0; begin < share.k; begin += kStretch) {
    const int64_t end = begin + kStretch < share.k ? begin + kStretch : share.k;
    constexpr int64_t kInputBytes = kDotFeatures * Weights::kBytes;
    add_stretch_to_rows<V, Weights, kPanels, kMax>({.weights = panel + begin * kInputBytes,
                                                    .panel_bytes = share.panel_bytes,
                                                    .x = share.x + rows.begin * share.k + begin,
                                                    .inputs = end - begin,
                                                    .k = share.k,
                                                    .sums = sums,
                                                    .ahead = kStretch * kInputBytes,
                                                    .step = kInputBytes,
                                                    .panel_end = (share.k - begin) * kInputBytes},
                                                   row_count);
  }
  for (int s = 0; s < kPanels; ++s)
    store_panel<V>(share, feature + s * kDotFeatures, rows, sums + s * kRowsOfChunk * kDotFeatures);
}

// The products of whole groups of kPanels panels from `feature` on, kMax rows at a time. Returns the first
// feature that is left.
template <typename V, typename Weights, int kPanels, int kMax>
int64_t panel_products(const LinearShare& share, int64_t feature) {
  constexpr int64_t kFeatures = kPanels * kDotFeatures;
  for (; feature + (kFeatures - kDotFeatures) < share.features.end; feature += kFeatures) {
    for (int64_t row = 0; row < share.rows; row += kRowsOfChunk) {
      const int64_t end = row + kRowsOfChunk < share.rows ? row + kRowsOfChunk : share.rows;
      panel_product<V, Weights, kPanels, kMax>(share, feature, {row, end});
    }
  }
  return feature;
}

template <typename V, typename Weights>
void panels_of(const LinearShare& share) {
  int64_t feature = share.features.begin;
  if (share.rows <= kFewRows)
    feature = panel_products<V, Weights, V::kPanelsOfFewRows, kFewRows>(share, feature);
  if constexpr (V::kManyRows > 0) {
    if (share.rows >= V::kManyRows) feature = panel_products<V, Weights, 2, V::kManyRows>(share, feature);
  }
  panel_products<V, Weights, 1, V::kRowsAtOnce>(share, feature);
}

template <typename V>
void panel_linear(const LinearShare& share) {
  switch (share.dtype) {
    case DType::kF16:
      return panels_of<V, F16Weights<V>>(share);
    case DType::kBF16:
      return panels_of<V, BF16Weights<V>>(share);
    default:
      return panels_of<V, F32Weights<V>>(share);
  }
}

}  // namespace outrider::simd
