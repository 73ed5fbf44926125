// SPDX-License-Identifier: Apache-2.0
// Steps of a gated delta net. Columns of the state are independent of one another, so each tile of columns
// goes through all steps before the next one: it stays in the first-level cache.
#pragma once

#include "kernels/isa_ops.h"

namespace outrider::simd {

// Columns [first, first + count) of one tile, with count <= kVectors * V::kLanes.
template <typename V, int kVectors>
void delta_columns(const DeltaArgs& args, int64_t first, int64_t count) {
  using Floats = typename V::Floats;
  const int64_t rows = args.key_dim,
                stride = args.tile_columns(first / DeltaArgs::kTileColumns * DeltaArgs::kTileColumns);
  const float* const q = args.q;
  const float* const k = args.k;
  Floats known[kVectors], sums[kVectors], change[kVectors];
  int64_t lanes[kVectors];
#pragma GCC unroll 4
  for (int s = 0; s < kVectors; ++s) {
    const int64_t left = count - s * V::kLanes;
    lanes[s] = left < V::kLanes ? left : V::kLanes;
    known[s] = sums[s] = V::all(0);
  }
  const int64_t begin = args.place(0, first);
  const float* state = args.state + begin;
  for (int64_t i = 0; i < rows; ++i, state += stride) {
    const Floats key = V::all(k[i]);
#pragma GCC unroll 4
    for (int s = 0; s < kVectors; ++s)
      known[s] = V::multiply_add(V::load_first(state + s * V::kLanes, lanes[s]), key, known[s]);
  }
#pragma GCC unroll 4
  for (int s = 0; s < kVectors; ++s) {
    const Floats v = V::load_first(args.v + first + s * V::kLanes, lanes[s]);
    change[s] = V::mul(V::all(args.rate), V::multiply_add(V::all(-args.decay), known[s], v));
  }
  const Floats decay = V::all(args.decay);
  state = args.state + begin;
  float* moved_state = args.new_state + begin;
  for (int64_t i = 0; i < rows; ++i, state += stride, moved_state += stride) {
    const Floats key = V::all(k[i]), query = V::all(q[i]);
#pragma GCC unroll 4
    for (int s = 0; s < kVectors; ++s) {
      const Floats kept = V::mul(decay, V::load_first(state + s * V::kLanes, lanes[s]));
      const Floats moved = V::multiply_add(key, change[s], kept);
      V::store_first(moved_state + s * V::kLanes, moved, lanes[s]);
      sums[s] = V::multiply_add(moved, query, sums[s]);
    }
  }
  if (args.y == nullptr) return;
#pragma GCC unroll 4
  for (int s = 0; s < kVectors; ++s) V::store_first(args.y + first + s * V::kLanes, sums[s], lanes[s]);
}

// Columns [first, end), of one tile, of all steps.
template <typename V>
void delta_tile(const DeltaArgs* steps, int64_t count, int64_t first, int64_t end) {
  constexpr int kVectors = 4;
  for (; first + kVectors * V::kLanes <= end; first += kVectors * V::kLanes) {
    for (int64_t i = 0; i < count; ++i) delta_columns<V, kVectors>(steps[i], first, kVectors * V::kLanes);
  }
  for (; first < end; first += V::kLanes) {
    const int64_t left = end - first;
    for (int64_t i = 0; i < count; ++i)
      delta_columns<V, 1>(steps[i], first, left < V::kLanes ? left : V::kLanes);
  }
}

template <typename V>
void delta_steps(const DeltaArgs* steps, int64_t count) {
  if (count == 0) return;
  const int64_t columns = steps[0].value_dim;
  for (int64_t first = 0; first < columns; first += DeltaArgs::kTileColumns)
    delta_tile<V>(steps, count, first, first + steps[0].tile_columns(first));
}

}  // namespace outrider::simd
