// SPDX-License-Identifier: Apache-2.0
// A step of a gated delta net. Columns of the state are independent of one another, so it goes in tiles of
// columns that stay in the first-level cache between their two readings.
#pragma once

#include "kernels/isa_ops.h"

namespace outrider::simd {

// Columns [first, first + count) with count <= kVectors * V::kLanes.
template <typename V, int kVectors>
void delta_tile(const DeltaArgs& args, int64_t first, int64_t count) {
  using Floats = typename V::Floats;
  int64_t lanes[kVectors];
  Floats known[kVectors], sums[kVectors], change[kVectors];
  for (int s = 0; s < kVectors; ++s) {
    const int64_t left = count - s * V::kLanes;
    lanes[s] = left < V::kLanes ? left : V::kLanes;
    known[s] = sums[s] = V::all(0);
  }
  const auto column = [&](const float* rows, int64_t row, int s) __attribute__((always_inline)) {
    return rows + row * args.value_dim + first + s * V::kLanes;
  };
  for (int64_t i = 0; i < args.key_dim; ++i) {
    for (int s = 0; s < kVectors; ++s) {
      const Floats state = V::load_first(column(args.state, i, s), lanes[s]);
      known[s] = V::multiply_add(state, V::all(args.k[i]), known[s]);
    }
  }
  for (int s = 0; s < kVectors; ++s) {
    const Floats v = V::load_first(args.v + first + s * V::kLanes, lanes[s]);
    change[s] = V::mul(V::all(args.rate), V::multiply_add(V::all(-args.decay), known[s], v));
  }
  for (int64_t i = 0; i < args.key_dim; ++i) {
    for (int s = 0; s < kVectors; ++s) {
      const Floats state = V::load_first(column(args.state, i, s), lanes[s]);
      const Floats kept = V::mul(V::all(args.decay), state);
      const Floats moved = V::multiply_add(V::all(args.k[i]), change[s], kept);
      V::store_first(const_cast<float*>(column(args.new_state, i, s)), moved, lanes[s]);
      sums[s] = V::multiply_add(moved, V::all(args.q[i]), sums[s]);
    }
  }
  for (int s = 0; s < kVectors && args.y != nullptr; ++s)
    V::store_first(args.y + first + s * V::kLanes, sums[s], lanes[s]);
}

template <typename V>
void delta_step(const DeltaArgs& args) {
  constexpr int kVectors = 4;
  int64_t first = 0;
  for (; first + kVectors * V::kLanes <= args.value_dim; first += kVectors * V::kLanes)
    delta_tile<V, kVectors>(args, first, kVectors * V::kLanes);
  for (; first < args.value_dim; first += V::kLanes) {
    const int64_t left = args.value_dim - first;
    delta_tile<V, 1>(args, first, left < V::kLanes ? left : V::kLanes);
  }
}

}  // namespace outrider::simd
