// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

// The numbers that a norm is taken of: each row has `parts` of `dim` numbers side by side, which are
// normalized one by one.
struct NormParts {
  int rows;
  int parts;
  int dim;
  int x_stride;  // from row to row
  int y_stride;
  int weight_stride;  // from part to part; 0: all have the same weights
  float epsilon;

  SIMT int count() const { return rows * parts; }
  SIMT int64_t x_place(int item) const {
    return static_cast<int64_t>(item / parts) * x_stride + item % parts * dim;
  }
  SIMT int64_t y_place(int item) const {
    return static_cast<int64_t>(item / parts) * y_stride + item % parts * dim;
  }
  SIMT int64_t weight_place(int item) const { return static_cast<int64_t>(item % parts) * weight_stride; }
};

// y = x / sqrt(mean of x * x + epsilon) * weight, part by part.
struct RmsNormArgs {
  Rows<const float> x;
  Weights<float> weight;
  Rows<float> y;  // may be x
  NormParts of;
};

// Numbers i + lane, of which load_tail() has the first kSumChains within the row, and zeros.
template <typename T>
SIMT Floats load_run(const Rows<T>& x, int i) {
  return x.load(lane_id() + Ints(i));
}
SIMT Floats load_run(const Shared<float>& x, int i) { return x.get_from(i); }
template <typename T>
SIMT Floats load_tail(const Rows<T>& x, Bools in, int i) {
  return x.load_if(in, lane_id() + Ints(i), 0.0F);
}
SIMT Floats load_tail(const Shared<float>& x, Bools in, int i) {
  return select(in, x.get(select(in, lane_id() + Ints(i), Ints(0))), Floats(0.0F));
}

// The sum of squares in four times kSumChains chains; the last numbers of a row go to the first ones. All
// lanes get it.
template <typename Numbers>
SIMT_PART Floats sum_of_squares(const Numbers& x, int dim) {
  constexpr int kRegisters = 4 * kSumChains / kWarp;
  const Ints lane = lane_id();
  Floats chains[kRegisters];
  SIMT_UNROLL
  for (int r = 0; r < kRegisters; ++r) chains[r] = Floats(0.0F);
  int i = 0;
  for (; i + 4 * kSumChains <= dim; i += 4 * kSumChains) {
    SIMT_UNROLL
    for (int r = 0; r < kRegisters; ++r) {
      const Floats v = load_run(x, i + r * kWarp);
      chains[r] = fma_rn(v, v, chains[r]);
    }
  }
  const Bools in_first = lane < Ints(kSumChains);
  for (; i < dim; i += kSumChains) {
    const Floats v = load_tail(x, in_first && lane + Ints(i) < Ints(dim), i);
    chains[0] = select(in_first, fma_rn(v, v, chains[0]), chains[0]);
  }
  // (first + second) + (third + fourth) chains
  SIMT_UNROLL
  for (int r = 0; r < kRegisters; ++r) chains[r] = add_rn(chains[r], shuffle_xor(chains[r], kSumChains));
  return sum_lanes(add_rn(chains[0], chains[1]), kSumChains);
}

// The factor of all numbers.
template <typename Numbers>
SIMT_PART Floats rms_factor(const Numbers& x, int dim, float epsilon) {
  const Floats mean = div_rn(sum_of_squares(x, dim), Floats(to_float(dim)));
  return div_rn(Floats(1.0F), sqrt_rn(add_rn(mean, Floats(epsilon))));
}

// A warp takes a part of a row.
SIMT void rms_norm(const Block& block, const RmsNormArgs& args) {
  const int item = block.index() * block.warps() + block.warp(), dim = args.of.dim;
  if (item >= args.of.count()) return;
  block.wait_for_previous();
  const Ints lane = lane_id();
  const auto x = args.x.from(args.of.x_place(item));
  const Floats scale = rms_factor(x, dim, args.of.epsilon);
  const auto weight = args.weight.from(args.of.weight_place(item));
  const auto y = args.y.from(args.of.y_place(item));
  for (int first = 0; first < dim; first += kWarp) {
    const Ints i = lane + Ints(first);
    const Bools in = i < Ints(dim);
    y.store_if(in, i, mul_rn(mul_rn(x.load_if(in, i, 0.0F), scale), weight.load_if(in, i, 0.0F)));
  }
}

}  // namespace outrider::simt
