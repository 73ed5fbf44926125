// SPDX-License-Identifier: Apache-2.0
// Inputs of bf16 products: pairs of a tile of rows, [pair][width]. Unnamed namespace on purpose, see
// isa_ops.h.
#pragma once

#include "kernels/isa_ops.h"

namespace outrider {
namespace {

using Pair = uint32_t;  // two bf16, the first one in the low half

int64_t pairs_of(int64_t k) { return (k + 1) / 2; }

// Items: blocks of kCodeBlock inputs of a tile of rows: (tile, block), flattened. `pack` takes kStep inputs
// of one row, or the `left` there are, to pairs that are `width` apart.
template <int64_t kStep, void (*pack)(const float* x, int64_t left, int64_t width, Pair* to)>
void pack_pair_inputs(const InputShare& share) {
  const int64_t blocks = (share.k + kCodeBlock - 1) / kCodeBlock;
  for (int64_t item = share.items.begin; item < share.items.end; ++item) {
    const int64_t first = item / blocks * kPairRows;
    const int64_t width = share.rows - first < kPairRows ? share.rows - first : kPairRows;
    const int64_t begin = item % blocks * kCodeBlock;
    const int64_t end = begin + kCodeBlock < share.k ? begin + kCodeBlock : share.k;
    Pair* tile = reinterpret_cast<Pair*>(share.packed) + first * pairs_of(share.k);
    for (int64_t r = 0; r < width; ++r) {
      const float* x = share.x + (first + r) * share.k;
      for (int64_t i = begin; i < end; i += kStep) pack(x + i, end - i, width, tile + i / 2 * width + r);
    }
  }
}

}  // namespace
}  // namespace outrider
