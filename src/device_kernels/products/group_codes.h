// SPDX-License-Identifier: Apache-2.0
// Weights and inputs of integer products as kernels see them. A panel has 16 features, a chunk 32 inputs.
#pragma once

#include "device_kernels/products/code_ring.h"

namespace outrider::simt {

inline constexpr int kPanelFeatures = 16;
inline constexpr int kChunk = 32;
inline constexpr int kTileRows = 8;  // rows of mma_s8()
inline constexpr int kTileSums = kPanelFeatures * kTileRows;

// Weights with a scale for each feature and group: x = scale * number of the code - min. Codes lie in the
// order of lanes, so that 16 bytes of a lane are operands of mma_s8(). Lane 4g + t has features g and g + 8.
// - 8 bits: [panel][chunk][lane][4 words], as mma_s8() has them
// - 4 bits: [panel][two chunks][lane][chunk][feature]: inputs 4t to 4t + 3, with inputs 4t + 16 to 4t + 19 in
//   the high nibbles
struct GroupedWeights {
  Weights<int> codes;
  Weights<uint16_t> scales;  // [panel][group][16], f16
  Weights<uint16_t> mins;    // the same, or null
  Weights<float> units;      // [panel]: what its scales and mins are multiples of
  int numbers[4];            // of 4-bit codes that stand for numbers of a table, as bytes
  int n;
  int k;
};

// Inputs as 8-bit codes; x = scale * code. There are rows up to a multiple of kTileRows; padding
// rows are 0. Words 2t and 2t + 1 of a row have inputs 4t to 4t + 3 and 4t + 16 to 4t + 19, which are
// operands of one lane.
struct GroupedInputs {
  Rows<const int> codes;     // [chunk][padded rows][8 words]
  Rows<const float> scales;  // [chunk][padded rows]
  Rows<const int> sums;      // [chunk][2][padded rows]: sums of the codes of each half
  int rows;
  int padded;
};

struct GroupedProductArgs {
  GroupedWeights weights;
  GroupedInputs x;
  Rows<float> y;  // [rows, y_stride], the product's outputs first
  int y_stride;
};

// The encoding of a type: bits of a code, size of a group, and what 4-bit codes without a min stand for.
template <int kCodeBits, int kGroupSize, bool kMin, bool kLooksUp>
struct GroupCodes {
  static constexpr int kBits = kCodeBits;
  static constexpr int kGroup = kGroupSize;
  static constexpr bool kHasMin = kMin;
  static constexpr bool kIsTable = kLooksUp;
  static constexpr bool kIsCentred = kCodeBits == 4 && !kMin && !kLooksUp;  // the code 8 is zero
  static constexpr int kGroupsOfChunk = kChunk / kGroupSize;
  static constexpr int kChunksOfTile = kCodeBits == 4 ? 2 : 1;
};
using CentredNibbles = GroupCodes<4, 32, false, false>;
using MinNibbles = GroupCodes<4, 32, true, false>;
using NarrowMinNibbles = GroupCodes<4, 16, true, false>;
using TableNibbles = GroupCodes<4, 32, false, true>;
using NarrowTableNibbles = GroupCodes<4, 16, false, true>;
using ByteCodes = GroupCodes<8, 32, false, false>;
using MinBytes = GroupCodes<8, 32, true, false>;
using NarrowBytes = GroupCodes<8, 16, false, false>;

// Where the codes of lanes' inputs lie among the bytes of a row.
SIMT Ints places_of_codes() {
  const Ints i = lane_id();
  return ((i & Ints(12)) << Ints(1)) | ((i >> Ints(4)) << Ints(2)) | (i & Ints(3));
}

// Four bytes less 8, each a number from 0 to 15.
SIMT Ints centred(Ints codes) {
  const Ints high(static_cast<int>(0x80808080U));
  return ((codes | high) - Ints(0x08080808)) ^ high;
}

// The operand of mma_s8() that is chunk `chunk` of a tile.
template <typename Codes>
SIMT_PART void unpack_codes(const GroupedWeights& weights, const Ints (&tile)[4], int chunk, Ints (&a)[4]) {
  if constexpr (Codes::kBits == 8) {
    for (int i = 0; i < 4; ++i) a[i] = tile[i];
  } else {
    SIMT_UNROLL
    for (int f = 0; f < 2; ++f) {
      const Ints both = chunk == 0 ? tile[f] : tile[2 + f];
      a[f] = both & Ints(0x0F0F0F0F);
      a[2 + f] = (both >> Ints(4)) & Ints(0x0F0F0F0F);
    }
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) {
      if constexpr (Codes::kIsTable) a[i] = look_up(weights.numbers, a[i]);
      if constexpr (Codes::kIsCentred) a[i] = centred(a[i]);
    }
  }
}

// Integer sums of the groups of a chunk, see mma_s8(), for the eight rows from `row` on.
template <typename Codes>
SIMT_PART void chunk_sums(const Ints (&a)[4], const GroupedInputs& x, int chunk, int row,
                          Ints (&sums)[Codes::kGroupsOfChunk][4]) {
  Ints b[2];
  x.codes.from((static_cast<int64_t>(chunk) * x.padded + row) * (kChunk / 4)).load_pairs(0, b);
  for (int group = 0; group < Codes::kGroupsOfChunk; ++group) {
    for (int i = 0; i < 4; ++i) sums[group][i] = Ints(0);
  }
  if constexpr (Codes::kGroup == kChunk) {
    mma_s8(sums[0], a, b);
  } else {
    const Ints first[2] = {a[0], a[1]}, second[2] = {a[2], a[3]};
    mma_s8(sums[0], first, b[0]);
    mma_s8(sums[1], second, b[1]);
  }
}

// Outputs of lanes: lane 16p + f has feature f and row `row` + p.
struct SideBySide {
  int row;

  template <typename View>
  SIMT auto of_features(const View& view, int64_t panel) const {
    return view.load_twice(panel);
  }
  template <typename View>
  SIMT auto of_rows(const View& view, int64_t first) const {
    return view.load_halves(first + row);
  }
};

// Any feature and row in each lane.
struct Scattered {
  Ints feature, row;

  template <typename View>
  SIMT auto of_features(const View& view, int64_t panel) const {
    return view.from(panel).load(feature);
  }
  template <typename View>
  SIMT auto of_rows(const View& view, int64_t first) const {
    return view.from(first).load(row);
  }
};

// Scales of weights by feature: of a feature in each lane, in group `group` of the panel.
struct FeatureScales {
  Floats scale, min;
};

template <typename Codes, typename Outputs>
SIMT_PART FeatureScales feature_scales(const GroupedWeights& weights, int panel, int group,
                                       const Outputs& outputs) {
  const int groups = weights.k / Codes::kGroup;
  const int64_t place = (static_cast<int64_t>(panel) * groups + group) * kPanelFeatures;
  const Floats unit(weights.units.load_one(panel));
  FeatureScales scales = {mul_rn(from_half(outputs.of_features(weights.scales, place)), unit), Floats(0.0F)};
  if constexpr (Codes::kHasMin) {
    scales.min = mul_rn(from_half(outputs.of_features(weights.mins, place)), sub_rn(Floats(0.0F), unit));
  }
  return scales;
}

// Scales of inputs by row.
struct RowScales {
  Floats scale, scaled_sum;  // scaled_sum: the sum of the group's inputs
};

template <typename Codes, typename Outputs>
SIMT_PART RowScales row_scales(const GroupedInputs& x, int group, const Outputs& outputs) {
  const int64_t chunk = group / Codes::kGroupsOfChunk;
  RowScales scales = {outputs.of_rows(x.scales, chunk * x.padded), Floats(0.0F)};
  if constexpr (Codes::kHasMin) {
    const int64_t halves = chunk * 2 * x.padded;
    Ints sum(0);
    if constexpr (Codes::kGroup == kChunk) {
      sum = outputs.of_rows(x.sums, halves) + outputs.of_rows(x.sums, halves + x.padded);
    } else {
      sum = outputs.of_rows(x.sums, halves + group % 2 * x.padded);
    }
    scales.scaled_sum = mul_rn(scales.scale, to_float(sum));
  }
  return scales;
}

// Adds the integer sum of a group to an output, as every table does.
template <typename Codes>
SIMT_PART Floats add_group(Floats y, Ints sum, const FeatureScales& weight, const RowScales& x) {
  y = fma_rn(to_float(sum), mul_rn(weight.scale, x.scale), y);
  if constexpr (Codes::kHasMin) y = fma_rn(weight.min, x.scaled_sum, y);
  return y;
}

}  // namespace outrider::simt
