// SPDX-License-Identifier: Apache-2.0
// Products with plain numbers on panels of 16 output features: a stretch of weights serves all rows of a
// chunk and is converted on the way, so that arithmetic overlaps with reading.
//
// The sum of one output: inputs are cut into stretches of 256, or of a block of F8. Within one, input i
// belongs to chain i % kChains; chains run in order and are added in pairs. The sums of stretches are added
// in order, times the scale of a block. Therefore the bits of an output depend only on its own row, its own
// weights and k, and are the same in every table that has this product.
#pragma once

#include "kernels/isa_ops.h"
#include "kernels/simd/float_tiles.h"

namespace outrider::simd {

inline constexpr int kChains = 4;  // independent sums over the inputs
inline constexpr int64_t kTilesOfChunk = 10;
inline constexpr int64_t kRowsOfChunk = kTilesOfChunk * kFloatRows;

// Readers of weights; f32 needs no conversion. A stretch has so many inputs, and begins with scales if any.
struct PlainWeights {
  static constexpr int64_t kStretch = 256, kScaleBytes = 0;
  // Whether a stretch becomes f32 before several groups of rows read it, as converting it takes long.
  static constexpr bool kIsWidened = false;
  static constexpr bool kIsWide = false;  // whether that has been done
};

template <typename V>
struct F32Weights : PlainWeights {
  static constexpr int64_t kBytes = 4;
  static typename V::Floats load(const uint8_t* p) { return V::load(reinterpret_cast<const float*>(p)); }
};

template <typename V>
struct F16Weights : PlainWeights {
  static constexpr int64_t kBytes = 2;
  static typename V::Floats load(const uint8_t* p) { return V::load_halves(p); }
};

template <typename V>
struct BF16Weights : PlainWeights {
  static constexpr int64_t kBytes = 2;
  static typename V::Floats load(const uint8_t* p) { return V::load_bf16(p); }
};

template <typename V>
struct F8Weights {
  static constexpr int64_t kStretch = kF8Block, kScaleBytes = kF8Scales;
  static constexpr bool kIsWidened = true, kIsWide = false;
  static constexpr int64_t kBytes = 1;
  static typename V::Floats load(const uint8_t* p) { return V::load_e4m3_halves(p); }
};

template <typename V, typename Weights>
struct WideWeights {
  static constexpr int64_t kStretch = Weights::kStretch, kScaleBytes = Weights::kScaleBytes;
  static constexpr bool kIsWidened = false, kIsWide = true;
  static constexpr int64_t kBytes = 4;
  static constexpr int64_t kPanelBytes = kStretch * kDotFeatures * kBytes;
  static typename V::Floats load(const uint8_t* p) { return V::load(reinterpret_cast<const float*>(p)); }
};

// Few rows of one panel take less time than reading, so that the first-level cache keeps up. Beside the
// products of more rows, or for panels side by side, only the second-level cache has as many reads under way
// as keep memory busy.
template <bool kIsNear>
void prefetch_weights(const uint8_t* at) {
  if constexpr (kIsNear) {
    __builtin_prefetch(at);
  } else {
    __builtin_prefetch(at, /*rw=*/0, /*locality=*/2);
  }
}

// Inputs of some rows, from the first one of a stretch on.
template <typename V, bool kIsTiled>
struct RowInputs {
  const float* first;
  int64_t step;  // numbers from input to input of a tile, else from row to row

  const float* at(int64_t input, int row) const {
    return kIsTiled ? first + input * step + row : first + row * step + input;
  }
};

struct Stretch {
  const uint8_t* weights;  // [inputs, 16] of the first panel
  int64_t weights_step;    // bytes from there to the next panel
  const uint8_t* stored;   // the weights as stored, which are `weights` unless they were widened
  int64_t panel_bytes;     // from panel to panel as stored
  int64_t inputs;
  float* sums;  // [panels, rows of a chunk, 16]
  // Each stored panel is prefetched: as many inputs, a stretch further on. Where the panels end, that is the
  // beginning of the panels that follow all of them. Every group of rows prefetches its part, so that reading
  // takes as long as all products.
  int64_t ahead;      // bytes from `stored` to what the first input of this group prefetches
  int64_t step;       // bytes from input to input
  int64_t panel_end;  // bytes from `stored` to the end of the first panel
};

template <typename V, typename Weights, int kPanels, int kRows, bool kIsTiled>
struct StretchSums {
  static constexpr int kPartsOfPanel = kDotFeatures / V::kLanes, kParts = kPanels * kPartsOfPanel;
  static constexpr bool kFitRegisters = kChains * kRows * kParts <= V::kSums;
  using Chain = typename V::Floats[kRows][kParts];

  const Stretch& stretch;
  RowInputs<V, kIsTiled> x;
  int64_t row;  // of the chunk

  // One register less where nothing was widened.
  const uint8_t* stored() const { return Weights::kIsWide ? stretch.stored : stretch.weights; }
  static void clear(Chain& sums) {
    for (auto& of_row : sums) {
      for (auto& part : of_row) part = V::all(0);
    }
  }
  // `number` counts the inputs of a call.
  void add_input(int64_t i, int64_t number, Chain& sums) const __attribute__((always_inline)) {
    const uint8_t* of_input = stretch.weights + i * kDotFeatures * Weights::kBytes;
    int64_t ahead = stretch.ahead + number * stretch.step;
    if (kPanels > 1 && ahead >= stretch.panel_end) ahead += (kPanels - 1) * stretch.panel_bytes;
    for (int panel = 0; panel < kPanels; ++panel)
      prefetch_weights<(!kIsTiled && kPanels == 1)>(stored() + ahead + panel * stretch.panel_bytes);
    typename V::Floats weights[kParts];
    for (int part = 0; part < kParts; ++part) {
      weights[part] = Weights::load(of_input + part / kPartsOfPanel * stretch.weights_step +
                                    part % kPartsOfPanel * V::kLanes * Weights::kBytes);
    }
    for (int r = 0; r < kRows; ++r) {
      for (int part = 0; part < kParts; ++part) {
        typename V::Floats& sum = sums[r][part];
        if constexpr (kFitRegisters) {
          sum = V::multiply_add(V::all(*x.at(i, r)), weights[part], sum);
        } else {
          sum = V::multiply_add_all(x.at(i, r), weights[part], sum);
        }
      }
    }
  }
  // The sums so far and the sum of a stretch, in a part of the features.
  typename V::Floats add_sum(typename V::Floats total, typename V::Floats sum, int part) const {
    if constexpr (Weights::kScaleBytes == 0) {
      return V::add(total, sum);
    } else {
      const uint8_t* scales = stored() - Weights::kScaleBytes + part / kPartsOfPanel * stretch.panel_bytes +
                              part % kPartsOfPanel * V::kLanes * int64_t{sizeof(float)};
      return V::multiply_add(sum, V::load(reinterpret_cast<const float*>(scales)), total);
    }
  }
  // Adds the chains in pairs, and their sum to the outputs' sums.
  void finish(Chain (&sums)[kChains]) const {
    for (int r = 0; r < kRows; ++r) {
      for (int part = 0; part < kParts; ++part) {
        for (int chains = kChains / 2; chains > 0; chains /= 2) {
          for (int chain = 0; chain < chains; ++chain)
            sums[chain][r][part] = V::add(sums[chain][r][part], sums[chain + chains][r][part]);
        }
        float* total = stretch.sums + (part / kPartsOfPanel * kRowsOfChunk + row + r) * kDotFeatures +
                       part % kPartsOfPanel * V::kLanes;
        V::store(total, add_sum(V::load(total), sums[0][r][part], part));
      }
    }
  }
};

// Adds one stretch to the sums of kRows rows, from `row` on, of kPanels panels side by side. Where the sums
// of all chains do not fit the register file, one chain follows the other.
template <typename V, typename Weights, int kPanels, int kRows, bool kIsTiled>
void add_stretch(const Stretch& stretch, const RowInputs<V, kIsTiled>& x, int64_t row) {
  using Sums = StretchSums<V, Weights, kPanels, kRows, kIsTiled>;
  const Sums of_rows = {stretch, x, row};
  typename Sums::Chain sums[kChains];
  if constexpr (Sums::kFitRegisters) {
    for (auto& chain : sums) Sums::clear(chain);
    int64_t i = 0;
    for (; i + kChains <= stretch.inputs; i += kChains) {
      for (int chain = 0; chain < kChains; ++chain) of_rows.add_input(i + chain, i + chain, sums[chain]);
    }
    for (int chain = 0; chain < kChains; ++chain) {
      if (i + chain < stretch.inputs) of_rows.add_input(i + chain, i + chain, sums[chain]);
    }
  } else {
    int64_t number = 0;
    for (int chain = 0; chain < kChains; ++chain) {
      typename Sums::Chain own;
      Sums::clear(own);
      for (int64_t i = chain; i < stretch.inputs; i += kChains) of_rows.add_input(i, number++, own);
      __builtin_memcpy(sums[chain], own, sizeof(own));
    }
  }
  of_rows.finish(sums);
}

// At most kRows rows.
template <typename V, typename Weights, int kPanels, int kRows, bool kIsTiled>
void add_stretch_to(const Stretch& stretch, const RowInputs<V, kIsTiled>& x, Range rows) {
  if (rows.end - rows.begin == kRows)
    return add_stretch<V, Weights, kPanels, kRows, kIsTiled>(stretch, x, rows.begin);
  if constexpr (kRows > 1) add_stretch_to<V, Weights, kPanels, kRows - 1, kIsTiled>(stretch, x, rows);
}

// Rows that share a stretch while it is in the nearest cache: neighbouring tiles, if they are tiled.
struct Chunk {
  Range tiles;
  Range rows;
};

// Walks through the groups of rows of a chunk: of at most kMax rows, and of similar size within a tile,
// because weights are converted once per group.
template <typename V, int kMax, typename Visit>
void for_each_group(const LinearShare& share, const Chunk& chunk, Visit visit) {
  for (int64_t tile = chunk.tiles.begin; tile < chunk.tiles.end; ++tile) {
    const Range rows = float_tile<V>(share.rows, tile);
    const auto width = static_cast<int>(rows.end - rows.begin);
    for (int first = 0, count = 0; first < width; first += count) {
      const int left = width - first, groups = (left + kMax - 1) / kMax;
      count = (left + groups - 1) / groups;
      visit(rows, Range{rows.begin + first, rows.begin + first + count});
    }
  }
}

// Adds one stretch, from input `begin` on, to the sums of all rows of a chunk.
template <typename V, typename Weights, int kPanels, int kMax, bool kIsTiled>
void add_stretch_to_chunk(const LinearShare& share, Stretch stretch, int64_t begin, const Chunk& chunk) {
  if constexpr (kIsTiled) {
    const auto* packed = reinterpret_cast<const float*>(share.packed_x);
    for_each_group<V, kMax>(share, chunk, [&](Range tile, Range rows) {
      const int64_t width = tile.end - tile.begin, of_chunk = chunk.rows.begin;
      const float* first = packed + tile.begin * share.k + begin * width + (rows.begin - tile.begin);
      add_stretch_to<V, Weights, kPanels, kMax>(stretch, RowInputs<V, true>{first, width},
                                                {rows.begin - of_chunk, rows.end - of_chunk});
      stretch.ahead += stretch.step * stretch.inputs;
    });
  } else {
    const RowInputs<V, false> x = {share.x + begin, share.k};
    add_stretch_to<V, Weights, kPanels, kMax>(stretch, x, chunk.rows);
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

// The stretch as f32.
template <typename V, typename Weights, int kPanels>
void widen(const Stretch& stretch, float* wide) {
  for (int panel = 0; panel < kPanels; ++panel) {
    const uint8_t* from = stretch.weights + panel * stretch.weights_step;
    for (int64_t i = 0; i < Weights::kStretch * kDotFeatures; i += kDotFeatures, wide += kDotFeatures)
      V::widen_e4m3(from + i, wide);
  }
}

template <typename V, typename Weights, int kPanels, int kMax, bool kIsTiled>
void panel_product(const LinearShare& share, int64_t feature, const Chunk& chunk) {
  alignas(64) float sums[kPanels * kRowsOfChunk * kDotFeatures];
  const auto* panel =
      reinterpret_cast<const uint8_t*>(share.weights) + feature / kDotFeatures * share.panel_bytes;
  const int64_t row_count = chunk.rows.end - chunk.rows.begin;
  for (int s = 0; s < kPanels; ++s) {
    for (int64_t i = 0; i < row_count * kDotFeatures; ++i) sums[s * kRowsOfChunk * kDotFeatures + i] = 0;
  }
  constexpr int64_t kInputBytes = kDotFeatures * Weights::kBytes, kStretch = Weights::kStretch;
  constexpr int64_t kStretchBytes = Weights::kScaleBytes + kStretch * kInputBytes;
  int64_t groups = kIsTiled ? 0 : 1;
  if constexpr (kIsTiled) for_each_group<V, kMax>(share, chunk, [&groups](Range, Range) { ++groups; });
  // Rounded up: the parts leave nothing out.
  const int64_t of_input = (kStretchBytes + kStretch - 1) / kStretch, step = (of_input + groups - 1) / groups;
  for (int64_t begin = 0; begin < share.k; begin += kStretch) {
    const int64_t end = begin + kStretch < share.k ? begin + kStretch : share.k;
    const int64_t offset = begin / kStretch * kStretchBytes + Weights::kScaleBytes;
    const Stretch stretch = {.weights = panel + offset,
                             .weights_step = share.panel_bytes,
                             .stored = panel + offset,
                             .panel_bytes = share.panel_bytes,
                             .inputs = end - begin,
                             .sums = sums,
                             .ahead = kStretchBytes - Weights::kScaleBytes,
                             .step = step,
                             .panel_end = share.panel_bytes - offset};
    if constexpr (kIsTiled && Weights::kIsWidened) {
      if (groups > 1) {
        using Wide = WideWeights<V, Weights>;
        alignas(64) float wide[kPanels * kStretch * kDotFeatures];
        widen<V, Weights, kPanels>(stretch, wide);
        Stretch of_wide = stretch;
        of_wide.weights = reinterpret_cast<const uint8_t*>(wide);
        of_wide.weights_step = Wide::kPanelBytes;
        add_stretch_to_chunk<V, Wide, kPanels, kMax, kIsTiled>(share, of_wide, begin, chunk);
        continue;
      }
    }
    add_stretch_to_chunk<V, Weights, kPanels, kMax, kIsTiled>(share, stretch, begin, chunk);
  }
  for (int s = 0; s < kPanels; ++s)
    store_panel<V>(share, feature + s * kDotFeatures, chunk.rows, sums + s * kRowsOfChunk * kDotFeatures);
}

// The products of whole groups of kPanels panels from `feature` on, kMax rows at a time. Returns the first
// feature that is left.
template <typename V, typename Weights, int kPanels, int kMax, bool kIsTiled>
int64_t panel_products(const LinearShare& share, int64_t feature) {
  constexpr int64_t kFeatures = kPanels * kDotFeatures;
  const int64_t tiles = kIsTiled ? float_tiles<V>(share.rows) : 1;
  for (; feature + (kFeatures - kDotFeatures) < share.features.end; feature += kFeatures) {
    for (int64_t tile = 0; tile < tiles; tile += kTilesOfChunk) {
      const int64_t end = tile + kTilesOfChunk < tiles ? tile + kTilesOfChunk : tiles;
      Range rows = {0, share.rows};
      if constexpr (kIsTiled)
        rows = {float_tile<V>(share.rows, tile).begin, float_tile<V>(share.rows, end - 1).end};
      panel_product<V, Weights, kPanels, kMax, kIsTiled>(share, feature, {{tile, end}, rows});
    }
  }
  return feature;
}

template <typename V, typename Weights>
void panels_of(const LinearShare& share) {
  int64_t feature = share.features.begin;
  if (share.rows <= kUntiledRows) {
    // They have too few sums of one panel to fill the multipliers' pipelines.
    feature = panel_products<V, Weights, V::kPanelsOfFewRows, kUntiledRows, false>(share, feature);
    panel_products<V, Weights, 1, kUntiledRows, false>(share, feature);
    return;
  }
  if constexpr (V::kManyRows > 0) {
    if (share.rows >= V::kManyRows) feature = panel_products<V, Weights, 2, kFloatRows, true>(share, feature);
  }
  panel_products<V, Weights, 1, V::kRowsAtOnce, true>(share, feature);
}

template <typename V>
void panel_linear(const LinearShare& share) {
  switch (share.dtype) {
    case DType::kF16:
      return panels_of<V, F16Weights<V>>(share);
    case DType::kBF16:
      return panels_of<V, BF16Weights<V>>(share);
    case DType::kF8:
      return panels_of<V, F8Weights<V>>(share);
    default:
      return panels_of<V, F32Weights<V>>(share);
  }
}

}  // namespace outrider::simd
