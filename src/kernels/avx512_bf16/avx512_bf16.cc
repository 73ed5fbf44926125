// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512_bf16/pair_linear.h"
#include "kernels/isa_ops.h"

namespace outrider {
namespace {

// Handles every layout that pair_layout() returns.
void linear(const LinearShare& share) {
  share.layout == WeightLayout::kPairs ? pair_linear(share) : avx512_vnni_ops().linear(share);
}

void pack_inputs(const InputShare& share) {
  share.layout == InputLayout::kBF16Pairs ? pack_pair_inputs(share) : avx512_ops().pack_inputs(share);
}

int64_t multiply_add(InputLayout inputs, int64_t rounds) {
  return inputs == InputLayout::kBF16Pairs ? multiply_add_pairs(rounds)
                                           : avx512_vnni_ops().multiply_add(inputs, rounds);
}

}  // namespace

// As avx512, except for the products of bf16 weights.
IsaOps avx512_bf16_ops() {
  IsaOps ops = avx512_ops();
  ops.linear = linear;
  ops.pack_inputs = pack_inputs;
  ops.multiply_add = multiply_add;
  return ops;
}

}  // namespace outrider
