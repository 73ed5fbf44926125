// SPDX-License-Identifier: Apache-2.0
// Long lists of entries are attended to in chunks of kChunk entries, counted from entry 0 of a row's own
// list. Each chunk has a separate softmax, and chunks are added in order, so that chunks may be computed
// beside one another, as a GPU does, with the same bits.
#pragma once

#include "kernels/simd/row_ops.h"

namespace outrider::simd {

inline constexpr int64_t kChunk = 256;         // entries; a multiple of kBlock
inline constexpr int kRun = 256;               // (row, head) pairs that go through the cache together
inline constexpr int64_t kRunNumbers = 65536;  // of their outputs: 256 KiB

struct RunningSoftmax {
  float largest;
  float total;
};

inline constexpr RunningSoftmax kNoEntries = {-__builtin_huge_valf(), 0};

// The sums of all chunks so far, for the pairs of a run. Memory is touched only where there are two chunks.
template <typename V>
class ChunkSums {
 public:
  void start(int64_t items, int64_t head_dim) {
    head_dim_ = head_dim;
    for (int64_t item = 0; item < items; ++item) states_[item] = kNoEntries;
  }

  // Takes over the sums y [head_dim] of a chunk, and clears them for the next one.
  void add(int64_t item, RunningSoftmax& chunk, float* y) {
    if (chunk.total == 0) return;
    RunningSoftmax& whole = states_[item];
    const float largest = chunk.largest > whole.largest ? chunk.largest : whole.largest;
    alignas(64) float change[V::kLanes] = {whole.largest - largest, chunk.largest - largest};
    V::store(change, exp_of_negative<V>(V::load(change)));
    const bool is_first = whole.total == 0;
    float* const sums = sums_ + item * head_dim_;
    for (int64_t d = 0; d < head_dim_; d += V::kLanes) {
      const int64_t count = head_dim_ - d < V::kLanes ? head_dim_ - d : V::kLanes;
      auto sum = V::load_first(y + d, count);
      if (!is_first) {
        const auto own = V::mul(sum, V::all(change[1]));
        sum = V::multiply_add(V::load_first(sums + d, count), V::all(change[0]), own);
      }
      V::store_first(sums + d, sum, count);
      V::store_first(y + d, V::all(0), count);
    }
    whole = is_first
                ? chunk
                : RunningSoftmax{largest, __builtin_fmaf(whole.total, change[0], chunk.total * change[1])};
    chunk = kNoEntries;
  }

  const RunningSoftmax& state(int64_t item) const { return states_[item]; }
  const float* sums(int64_t item) const { return sums_ + item * head_dim_; }

 private:
  int64_t head_dim_ = 0;
  RunningSoftmax states_[kRun];
  alignas(64) float sums_[kRunNumbers];
};

}  // namespace outrider::simd
