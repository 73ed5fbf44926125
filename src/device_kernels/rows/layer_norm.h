// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_kernels/rows/rms_norm.h"

namespace outrider::simt {

// y = (x - mean of x) / sqrt(variance + epsilon) * weight + bias, part by part.
struct LayerNormArgs {
  Rows<const float> x;
  Weights<float> weight;
  Weights<float> bias;  // as weight; null: none
  Rows<float> y;        // may be x
  NormParts of;
};

SIMT_PART Floats sum_of_numbers(const Rows<const float>& x, int dim) {
  const Ints lane = lane_id();
  const Bools in_chains = lane < Ints(kSumChains);
  Floats sum(0.0F);
  for (int i = 0; i < dim; i += kSumChains) {
    const Floats v = x.load_if(in_chains && lane + Ints(i) < Ints(dim), lane + Ints(i), 0.0F);
    sum = add_rn(sum, v);
  }
  return Floats(shuffle(sum_lanes(sum, kSumChains), 0));
}

// A warp takes a part of a row.
SIMT void layer_norm(const Block& block, const LayerNormArgs& args) {
  const int item = block.index() * block.warps() + block.warp(), dim = args.of.dim;
  if (item >= args.of.count()) return;
  block.wait_for_previous();
  const Ints lane = lane_id();
  const auto x = args.x.from(args.of.x_place(item));
  const auto y = args.y.from(args.of.y_place(item));
  const Floats count(to_float(dim));
  const Floats mean = div_rn(sum_of_numbers(x, dim), count);
  for (int first = 0; first < dim; first += kWarp) {
    const Ints i = lane + Ints(first);
    const Bools in = i < Ints(dim);
    y.store_if(in, i, sub_rn(x.load_if(in, i, 0.0F), mean));
  }
  block.sync_warp();
  const Floats variance = div_rn(sum_of_squares(y, dim), count);
  const Floats scale = div_rn(Floats(1.0F), sqrt_rn(add_rn(variance, Floats(args.of.epsilon))));
  const int64_t place = args.of.weight_place(item);
  for (int first = 0; first < dim; first += kWarp) {
    const Ints i = lane + Ints(first);
    const Bools in = i < Ints(dim);
    const Floats weight = args.weight.from(place).load_if(in, i, 0.0F);
    Floats bias(0.0F);
    if (!args.bias.is_null()) bias = args.bias.from(place).load_if(in, i, 0.0F);
    y.store_if(in, i, add_rn(mul_rn(mul_rn(y.load_if(in, i, 0.0F), scale), weight), bias));
  }
}

}  // namespace outrider::simt
