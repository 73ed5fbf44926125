// SPDX-License-Identifier: Apache-2.0
// Products of bf16 weights with inputs rounded to bf16, on panels of 16 output features. An instruction
// multiplies two rows with two features, two pairs of inputs at a time. Unnamed namespace on purpose, see
// isa_ops.h.
//
// The sum of one output runs over the pairs of inputs in order, and a row without a partner is multiplied
// beside a copy of itself. Its bits therefore depend only on its own row, its own weights and k.
#pragma once

#include "kernels/isa_ops.h"
#include "kernels/neon/vector.h"
#include "kernels/simd/pair_inputs.h"

namespace outrider {
namespace {

// Inputs of some rows of one tile, at most kRowsTogether, [pair][width].
struct RowsOfTile {
  const Pair* first;  // of the first row
  int64_t width;
  int64_t row;  // number of the first row
  int64_t count;

  // 1, or 0 where the last row has none.
  int64_t partner(int64_t r) const { return r + 1 < count ? 1 : 0; }
};
inline constexpr int64_t kRowsTogether = 4;

// Sums [pair of features][row][feature] of two rows.
struct PanelSums {
  float32x4_t of[kDotFeatures / 2];
};

// One pair of inputs of a row and of its partner.
uint32x2_t load_pairs(const Pair* of_row, int64_t partner) {
  return vset_lane_u32(of_row[partner], vdup_n_u32(of_row[0]), 1);
}

// Two pairs of inputs of both rows: [row][pair].
bfloat16x8_t two_rows(uint32x2_t first_pair, uint32x2_t second_pair) {
  const uint32x2x2_t rows = vzip_u32(first_pair, second_pair);
  return vreinterpretq_bf16_u32(vcombine_u32(rows.val[0], rows.val[1]));
}

// Adds two pairs of inputs, of which the second one may be missing.
template <int kRowPairs>
void add_two_pairs(const Pair* weights, bool has_second, const RowsOfTile& rows, const Pair* x,
                   PanelSums (&sums)[kRowPairs]) {
  bfloat16x8_t of_rows[kRowPairs];
  for (int p = 0; p < kRowPairs; ++p) {
    const int64_t partner = rows.partner(2 * p);
    const auto second = has_second ? load_pairs(x + rows.width + 2 * p, partner) : vdup_n_u32(0);
    of_rows[p] = two_rows(load_pairs(x + 2 * p, partner), second);
  }
  for (int four = 0; four < kDotFeatures / 4; ++four) {
    const uint32x4_t a = vld1q_u32(weights + 4 * four);
    const uint32x4_t b = has_second ? vld1q_u32(weights + kDotFeatures + 4 * four) : vdupq_n_u32(0);
    const auto low = vreinterpretq_bf16_u32(vzip1q_u32(a, b));
    const auto high = vreinterpretq_bf16_u32(vzip2q_u32(a, b));
    for (int p = 0; p < kRowPairs; ++p) {
      float32x4_t* sum = sums[p].of + 2 * four;
      sum[0] = vbfmmlaq_f32(sum[0], of_rows[p], low);
      sum[1] = vbfmmlaq_f32(sum[1], of_rows[p], high);
    }
  }
}

void store_sums(const LinearShare& share, int64_t feature, int64_t row, bool has_partner,
                const PanelSums& sums) {
  for (int64_t four = 0; four < kDotFeatures / 4; ++four) {
    const int64_t left = share.n - feature - 4 * four;
    if (left <= 0) return;
    const float32x4_t low = sums.of[2 * four], high = sums.of[2 * four + 1];
    float* y = share.y + row * share.n + feature + 4 * four;
    Neon::store_first(y, vcombine_f32(vget_low_f32(low), vget_low_f32(high)), left);
    if (has_partner)
      Neon::store_first(y + share.n, vcombine_f32(vget_high_f32(low), vget_high_f32(high)), left);
  }
}

template <int kRowPairs>
void pair_product(const LinearShare& share, int64_t feature, const RowsOfTile& rows) {
  const int64_t pairs = pairs_of(share.k);
  const auto* weights =
      reinterpret_cast<const Pair*>(share.weights + feature / kDotFeatures * share.panel_bytes);
  PanelSums sums[kRowPairs];
  for (PanelSums& of_pair : sums) {
    for (float32x4_t& sum : of_pair.of) sum = vdupq_n_f32(0);
  }
  const Pair* x = rows.first;
  for (int64_t pair = 0; pair < pairs; pair += 2, x += 2 * rows.width) {
    const Pair* of_pair = weights + pair * kDotFeatures;
    __builtin_prefetch(reinterpret_cast<const std::byte*>(of_pair) + kPrefetchBytes);
    __builtin_prefetch(reinterpret_cast<const std::byte*>(of_pair + kDotFeatures) + kPrefetchBytes);
    add_two_pairs(of_pair, pair + 1 < pairs, rows, x, sums);
  }
  for (int64_t p = 0; p < kRowPairs; ++p)
    store_sums(share, feature, rows.row + 2 * p, rows.partner(2 * p) != 0, sums[p]);
}

void pair_linear(const LinearShare& share) {
  for (int64_t feature = share.features.begin; feature < share.features.end; feature += kDotFeatures) {
    const Pair* tile = reinterpret_cast<const Pair*>(share.packed_x);
    for (int64_t row = 0; row < share.rows; row += kPairRows) {
      const int64_t width = share.rows - row < kPairRows ? share.rows - row : kPairRows;
      for (int64_t r = 0; r < width; r += kRowsTogether) {
        const int64_t count = width - r < kRowsTogether ? width - r : kRowsTogether;
        const RowsOfTile rows = {tile + r, width, row + r, count};
        count > 2 ? pair_product<2>(share, feature, rows) : pair_product<1>(share, feature, rows);
      }
      tile += width * pairs_of(share.k);
    }
  }
}

// Four inputs of one row, or the `left` there are, as pairs `width` apart.
void pack_pairs(const float* x, int64_t left, int64_t width, Pair* to) {
  Pair pairs[2];
  Neon::store_bf16(reinterpret_cast<uint8_t*>(pairs), Neon::load_first(x, left));
  for (int64_t p = 0; p < 2 && 2 * p < left; ++p) to[p * width] = pairs[p];
}

// Pairs that are only multiplied, see simd/peaks.h.
int64_t multiply_add_pairs(int64_t rounds) {
  constexpr int kSums = 12;
  float32x4_t sums[kSums];
  for (auto& sum : sums) sum = vdupq_n_f32(0);
  auto x = vreinterpretq_bf16_u32(vdupq_n_u32(0x3F013F01));  // a little more than halves
  for (int64_t round = 0; round < rounds; ++round) {
    for (auto& sum : sums) sum = vbfmmlaq_f32(sum, x, x);
    asm volatile("" : "+x"(x));
  }
  for (auto& sum : sums) asm volatile("" : : "x"(sum));
  return rounds * kSums * 16 * 2;
}

}  // namespace
}  // namespace outrider
