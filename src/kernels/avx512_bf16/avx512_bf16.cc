// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512_bf16/pair_attention.h"
#include "kernels/avx512_bf16/pair_linear.h"
#include "kernels/isa_ops.h"

namespace outrider {
namespace {

// Handles every layout that pair_layout() returns.
void linear(const LinearShare& share) {
  share.layout == WeightLayout::kPairs ? pair_linear(share) : avx512_vnni_ops().linear.run(share);
}

void pack_inputs(const InputShare& share) {
  share.layout == InputLayout::kBF16Pairs ? pack_pair_inputs<32, pack_pairs>(share)
                                          : avx512_ops().pack_inputs.run(share);
}

// The choice depends on type and shape only, so that all rows of a model are computed alike.
void attention(const AttentionShare& share) {
  if (!bf16_attention::fits(*share.args)) return avx512_ops().attention.run(share);
  bf16_attention::attend_all<bf16_attention::PairProducts>(share);
}

int64_t multiply_add(InputLayout inputs, int64_t rounds) {
  return inputs == InputLayout::kBF16Pairs ? multiply_add_pairs(rounds)
                                           : avx512_vnni_ops().multiply_add(inputs, rounds);
}

}  // namespace

// As avx512, except for the products of bf16 weights and for attention over a cache of bf16.
IsaOps avx512_bf16_ops() {
  IsaOps ops = avx512_ops();
  ops.linear = {linear};
  ops.attention = {attention};
  ops.pack_inputs = {pack_inputs};
  ops.multiply_add = multiply_add;
  return ops;
}

}  // namespace outrider
