// SPDX-License-Identifier: Apache-2.0
#include "kernels/bf16/pair_products.h"
#include "kernels/isa_ops.h"

namespace outrider {
namespace {

// Handles every layout that pair_layout() returns.
void linear(const LinearShare& share) {
  share.layout == WeightLayout::kPairs ? pair_linear(share) : i8mm_ops().linear.run(share);
}

void pack_inputs(const InputShare& share) {
  share.layout == InputLayout::kBF16Pairs ? pack_pair_inputs<4, pack_pairs>(share)
                                          : neon_ops().pack_inputs.run(share);
}

int64_t multiply_add(InputLayout inputs, int64_t rounds) {
  return inputs == InputLayout::kBF16Pairs ? multiply_add_pairs(rounds)
                                           : i8mm_ops().multiply_add(inputs, rounds);
}

}  // namespace

// As i8mm, except for the products of bf16 weights.
IsaOps bf16_ops() {
  IsaOps ops = i8mm_ops();
  ops.linear = {linear};
  ops.pack_inputs = {pack_inputs};
  ops.multiply_add = multiply_add;
  return ops;
}

}  // namespace outrider
