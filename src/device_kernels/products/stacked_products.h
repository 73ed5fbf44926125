// SPDX-License-Identifier: Apache-2.0
// Products with one of several matrices of a shape, which lie one after the other. Every tile of eight rows
// has one matrix.
#pragma once

#include "device_kernels/products/channel_products.h"
#include "device_kernels/products/float_products.h"
#include "device_kernels/products/grouped_products.h"

namespace outrider::simt {

template <typename Args>
struct StackedArgs {
  Args product;           // with the weights of all matrices
  Rows<const int> tiles;  // [tiles of rows]: the matrix of each, or -1: its outputs are not written
  int matrices;
};

template <typename T>
SIMT Weights<T> weights_of_one(const Weights<T>& all, int matrix, int matrices) {
  const int64_t size = all.count / matrices;
  return {all.data + matrix * size, size};
}

SIMT GroupedWeights one_of(const GroupedWeights& all, int matrix, int matrices) {
  GroupedWeights one = all;
  one.codes = weights_of_one(all.codes, matrix, matrices);
  one.scales = weights_of_one(all.scales, matrix, matrices);
  if (!all.mins.is_null()) one.mins = weights_of_one(all.mins, matrix, matrices);
  one.units = weights_of_one(all.units, matrix, matrices);
  return one;
}
SIMT ChannelWeights one_of(const ChannelWeights& all, int matrix, int matrices) {
  ChannelWeights one = all;
  one.codes = weights_of_one(all.codes, matrix, matrices);
  one.scales = weights_of_one(all.scales, matrix, matrices);
  return one;
}

// Arguments with one of the matrices.
template <typename Args>
SIMT Args with_one_of(Args args, int matrix, int matrices) {
  args.weights = one_of(args.weights, matrix, matrices);
  return args;
}
template <typename Numbers>
SIMT FloatProductArgs<Numbers> with_one_of(FloatProductArgs<Numbers> args, int matrix, int matrices) {
  args.weights = weights_of_one(args.weights, matrix, matrices);
  if (!args.scales.is_null()) args.scales = weights_of_one(args.scales, matrix, matrices);
  return args;
}

SIMT int features_of(const GroupedProductArgs& args) { return args.weights.n; }
SIMT int features_of(const ChannelProductArgs& args) { return args.weights.n; }
template <typename Numbers>
SIMT int features_of(const FloatProductArgs<Numbers>& args) {
  return args.n;
}

// The kernel of one matrix runs with the matrix of its tile; its weights wait for the lists.
template <auto kKernel, typename Args>
SIMT void stacked(const Block& block, const StackedArgs<Args>& args) {
  block.wait_for_previous();
  const int panels = (features_of(args.product) + kPanelFeatures - 1) / kPanelFeatures;
  const int matrix = args.tiles.load_one(block.index() / panels);
  if (matrix < 0) return;
  kKernel(block, with_one_of(args.product, matrix, args.matrices));
}

using StackedGroupedArgs = StackedArgs<GroupedProductArgs>;
using StackedChannelArgs = StackedArgs<ChannelProductArgs>;
using StackedF32Args = StackedArgs<F32ProductArgs>;
using StackedF16Args = StackedArgs<F16ProductArgs>;
using StackedBf16Args = StackedArgs<Bf16ProductArgs>;
using StackedF8Args = StackedArgs<F8ProductArgs>;

}  // namespace outrider::simt
