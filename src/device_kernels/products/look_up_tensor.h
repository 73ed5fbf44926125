// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_kernels/products/look_up.h"
#include "device_kernels/products/tensor_products.h"

namespace outrider::simt {

struct TensorTableArgs {
  Weights<int> table;  // see TensorProductArgs
  LookedUp of;
};

// The numbers of a row, as unpack_row() has them.
template <typename Type>
SIMT void look_up_tensor(const Block& block, const TensorTableArgs& args) {
  const TableChunk place = table_chunk(block, args.of);
  if (!place.is_there) return;
  const int tiles = (args.of.k + kTileInputs - 1) / kTileInputs, f = place.token % kPanelFeatures;
  const int64_t panel = static_cast<int64_t>(place.token / kPanelFeatures) * tiles * kTileWords;
  const Ints input = lane_id() + Ints(place.chunk * kChunk), i = input & Ints(kTileInputs - 1);
  // See mma_bf16(): the lane that has the number, and the register.
  const Ints lane = Ints(f % 8 * 4) + ((i & Ints(7)) >> Ints(1)),
             word = Ints(f / 8) + ((i >> Ints(3)) << Ints(1));
  const Ints at = (input >> Ints(4)) * Ints(kTileWords) + lane * Ints(4) + word;
  const Ints both = args.table.from(panel).load_if(input < Ints(args.of.k), at, 0);
  put_chunk(args.of, place, Type::widen((both >> ((i & Ints(1)) << Ints(4))) & Ints(0xFFFF)));
}

}  // namespace outrider::simt
