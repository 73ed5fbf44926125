// SPDX-License-Identifier: Apache-2.0
// A product of few rows with the matrix of gates and numbers, and their activation: the last block to store
// outputs of a chunk takes the chunk further, which saves a launch.
#pragma once

#include "device_kernels/products/grouped_products.h"
#include "device_kernels/rows/activation.h"
#include "device_kernels/simt/arrivals.h"
#include "tensor/activation.h"

namespace outrider::simt {

struct ActivatedProductArgs {
  GroupedProductArgs product;  // with outputs [rows, 2 * dim] where it is gated, side by side
  ActivationArgs activation;   // x = product.y; dim is chunks
  int function;                // Activation
  Rows<int> arrivals;          // [tiles of rows, chunks of dim], 0 before and after
};

SIMT void activate_part(const ActivationArgs& args, Activation function, int row, int part) {
  switch (function) {
    case Activation::kSilu:
      return activate_part<Silu>(args, row, part);
    case Activation::kGelu:
      return activate_part<Gelu>(args, row, part);
    case Activation::kGeluTanh:
      return activate_part<GeluTanh>(args, row, part);
    case Activation::kRelu:
      return activate_part<Relu>(args, row, part);
    case Activation::kClampedSwiglu:
      return activate_part<ClampedSwiglu>(args, row, part);
  }
}

// A block takes a panel and eight rows, see few_rows(). A chunk of activated numbers comes from two panels of
// gates and two of numbers.
template <typename Codes>
SIMT void activated_few_rows(const Block& block, const ActivatedProductArgs& args) {
  constexpr int kChunkPanels = kChunk / kPanelFeatures;
  few_rows<Codes>(block, args.product);
  const int panels = args.product.weights.n / kPanelFeatures, chunks = args.activation.dim / kChunk;
  const int tile = block.index() / panels, chunk = block.index() % panels / kChunkPanels % chunks;
  const Shared<int> words(block, FewRowsMemory::kRings, kWarp);
  const int arriving = panels / chunks;
  if (!is_last_block(block, words, args.arrivals, static_cast<int64_t>(tile) * chunks + chunk, arriving))
    return;
  for (int row = block.warp(); row < kTileRows; row += block.warps()) {
    activate_part(args.activation, static_cast<Activation>(args.function), tile * kTileRows + row, chunk);
  }
}

}  // namespace outrider::simt
