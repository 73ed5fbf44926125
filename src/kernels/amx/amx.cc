// SPDX-License-Identifier: Apache-2.0
#include "kernels/amx/attention.h"
#include "kernels/amx/linear.h"
#include "kernels/isa_ops.h"

namespace outrider {
namespace {

// F32 and F16 weights have more bits than a bf16 tile holds.
void linear(const LinearShare& share) {
  if (share.dtype == DType::kF32 || share.dtype == DType::kF16) return avx512_ops().linear(share);
  tile_linear(share);
}

// Chosen by type and shape only, so that all rows of a model take the same way.
void attention(const AttentionShare& share) {
  if (!tile_attention::fits(*share.args)) return avx512_ops().attention(share);
  tile_attention::attend_all(share);
}

}  // namespace

IsaOps amx_ops() {
  IsaOps ops = avx512_ops();
  ops.linear = linear;
  ops.attention = attention;
  return ops;
}

}  // namespace outrider
