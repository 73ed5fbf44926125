// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/block/block_convolution.h"

namespace outrider {

void BlockConvolution::append_tensors(const std::string& prefix, const Sizes& sizes,
                                      std::vector<HeadTensor>& tensors) {
  tensors.push_back({.name = prefix + "base_kernel", .shape = {2, sizes.taps, sizes.hidden}});
  tensors.push_back({.name = prefix + "kernel_projection.weight", .shape = {sizes.own(), sizes.hidden}});
}

Status BlockConvolution::plan(const std::string& prefix, const Sizes& sizes, const HeadFile& head,
                              WeightLoader& loader) {
  sizes_ = sizes;
  OUTRIDER_TRY(base_, read_numbers(head, prefix + "base_kernel"));
  return loader.plan({{prefix + "kernel_projection", sizes.own()}}, sizes.hidden, /*bias=*/false, own_);
}

void BlockConvolution::reserve(int64_t rows) {
  weights_.reserve(rows, sizes_.own());
  backend_.reserve_product(own_, rows);
}

void BlockConvolution::weigh(FloatAddress input, int64_t rows) {
  reserve(rows);
  backend_.project(own_, input, weights_.data(), rows);
}

void BlockConvolution::apply(Side side, FloatAddress x, int64_t rows, int64_t block) {
  const auto base = static_cast<size_t>(sizes_.taps * sizes_.hidden);
  backend_.convolve_blocks({.base = std::span(base_).subspan(side * base, base),
                            .weights = weights_.data() + side * sizes_.taps * sizes_.groups(),
                            .weight_stride = sizes_.own(),
                            .x = x,
                            .rows = rows,
                            .block = block,
                            .taps = sizes_.taps,
                            .dim = sizes_.hidden,
                            .group = sizes_.group});
}

}  // namespace outrider
