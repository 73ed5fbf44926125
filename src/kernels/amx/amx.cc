// SPDX-License-Identifier: Apache-2.0
#include "kernels/amx/channel_linear.h"
#include "kernels/amx/group_linear.h"
#include "kernels/amx/peak.h"
#include "kernels/amx/tile_attention.h"
#include "kernels/amx/tile_linear.h"
#include "kernels/avx512_vnni/vector.h"
#include "kernels/isa_ops.h"

namespace outrider {
namespace {

// Handles every layout that tile_layout() returns.
void linear(const LinearShare& share) {
  switch (share.layout) {
    case WeightLayout::kPanels:
      return avx512_ops().linear.run(share);
    case WeightLayout::kDotBytes:
      return group_linear<Avx512Vnni>(share);
    case WeightLayout::kChannels:
      return channel_tile_linear(share);
    default:
      return tile_linear(share);
  }
}

void pack_inputs(const InputShare& share) {
  share.layout == InputLayout::kBF16Tiles ? pack_tile_inputs(share) : avx512_ops().pack_inputs.run(share);
}

// The choice depends on type and shape only, so that all rows of a model are computed alike.
void attention(const AttentionShare& share) {
  if (!bf16_attention::fits(*share.args)) return avx512_ops().attention.run(share);
  bf16_attention::attend_on_tiles(share);
}

int64_t multiply_add(InputLayout inputs, int64_t rounds) {
  const bool is_f32 = inputs == InputLayout::kF32 || inputs == InputLayout::kF32Tiles;
  return is_f32 ? avx512_ops().multiply_add(inputs, rounds) : multiply_add_tiles(inputs, rounds);
}

}  // namespace

IsaOps amx_ops() {
  IsaOps ops = avx512_ops();
  ops.linear = {linear};
  ops.attention = {attention};
  ops.pack_inputs = {pack_inputs};
  ops.multiply_add = multiply_add;
  return ops;
}

}  // namespace outrider
