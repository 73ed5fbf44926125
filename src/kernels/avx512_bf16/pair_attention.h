// SPDX-License-Identifier: Apache-2.0
// The products of attention on vectors of bf16 pairs. Unnamed namespace on purpose, see isa_ops.h.
#pragma once

#include "kernels/avx512_bf16/attention.h"

namespace outrider::bf16_attention {
namespace {

// A right-hand operand: vectors of 16 columns of one pair of rows, kStep numbers from one pair to the next. A
// step of 16 pairs and the next one are step_pitch numbers apart, 16 columns and the next ones column_pitch.
struct PairOperand {
  const Bf16* numbers;
  int64_t column_pitch;
  int64_t step_pitch;
  int steps;
};

// sums [kQueries, 16 * kVectors] (+)= left [kQueries, 32 * steps] times right; the rows of `left` and `sums`
// are so many numbers apart. Each sum runs over the pairs in their order.
template <int kQueries, int kVectors, bool kFromZero>
void add_pairs(const Bf16* left, int64_t left_pitch, const PairOperand& right, float* sums, int64_t pitch) {
  __m512 of_queries[kQueries][kVectors];
  for (int r = 0; r < kQueries; ++r) {
    for (int v = 0; v < kVectors; ++v)
      of_queries[r][v] = kFromZero ? _mm512_setzero_ps() : _mm512_load_ps(sums + r * pitch + 16 * v);
  }
  const Bf16* columns = right.numbers;
  for (int step = 0; step < right.steps; ++step, columns += right.step_pitch, left += kStep) {
    for (int pair = 0; pair < 16; ++pair) {
      __m512bh of_columns[kVectors];
      for (int v = 0; v < kVectors; ++v)
        of_columns[v] = (__m512bh)_mm512_load_si512(columns + v * right.column_pitch + pair * kStep);
      for (int r = 0; r < kQueries; ++r) {
        int32_t two;
        __builtin_memcpy(&two, left + r * left_pitch + 2 * pair, sizeof(two));
        const auto of_query = (__m512bh)_mm512_set1_epi32(two);
        for (int v = 0; v < kVectors; ++v)
          of_queries[r][v] = _mm512_dpbf16_ps(of_queries[r][v], of_columns[v], of_query);
      }
    }
  }
  for (int r = 0; r < kQueries; ++r) {
    for (int v = 0; v < kVectors; ++v) _mm512_store_ps(sums + r * pitch + 16 * v, of_queries[r][v]);
  }
}

struct PairProducts {
  static constexpr int kQueries = 12;
  static constexpr int kTogether = 6;  // queries with sums that fit into the registers, in four vectors each

  // See QueriesOfHead.
  static void score(const Bf16* q, const PackedBlock& block, int64_t head_dim, int queries,
                    float (*scores)[kBlock]) {
    const auto steps = static_cast<int>(head_dim / kStep);
    const PairOperand keys = {block.keys, head_dim * 16, kTileNumbers, steps};
    add_columns<true>({q, head_dim}, keys, queries, block.tiles, scores[0], kBlock);
  }
  static void add_values(const PackedBlock& block, int64_t head_dim, const Bf16 (*weights)[kBlock],
                         int queries, float* sums) {
    const PairOperand values = {block.values, kTileNumbers, kStep * head_dim, (block.tiles + 1) / 2};
    const auto vectors = static_cast<int>(head_dim / 16);
    add_columns<false>({weights[0], kBlock}, values, queries, vectors, sums, head_dim);
  }

 private:
  struct LeftOperand {
    const Bf16* numbers;
    int64_t pitch;
  };

  template <bool kFromZero>
  static void add_columns(LeftOperand left, PairOperand right, int queries, int vectors, float* sums,
                          int64_t pitch) {
    for (; vectors >= 4; vectors -= 4, right.numbers += 4 * right.column_pitch, sums += 64)
      add_queries<4, kFromZero>(left, right, queries, sums, pitch);
    for (; vectors > 0; --vectors, right.numbers += right.column_pitch, sums += 16)
      add_queries<1, kFromZero>(left, right, queries, sums, pitch);
  }

  template <int kVectors, bool kFromZero>
  static void add_queries(LeftOperand left, const PairOperand& right, int queries, float* sums,
                          int64_t pitch) {
    for (; queries > 0; queries -= kTogether) {
      add_few<kTogether, kVectors, kFromZero>(left, right, queries, sums, pitch);
      left.numbers += kTogether * left.pitch;
      sums += kTogether * pitch;
    }
  }

  // At most kMost queries.
  template <int kMost, int kVectors, bool kFromZero>
  static void add_few(LeftOperand left, const PairOperand& right, int queries, float* sums, int64_t pitch) {
    if constexpr (kMost > 1) {
      if (queries < kMost) return add_few<kMost - 1, kVectors, kFromZero>(left, right, queries, sums, pitch);
    }
    add_pairs<kMost, kVectors, kFromZero>(left.numbers, left.pitch, right, sums, pitch);
  }
};

}  // namespace
}  // namespace outrider::bf16_attention
