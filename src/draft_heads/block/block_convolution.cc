// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/block/block_convolution.h"

#include <algorithm>

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

void BlockConvolution::reserve(LayerOps& ops, int64_t rows) {
  weights_.reserve(rows, sizes_.own());
  ops.reserve(own_, rows);
}

void BlockConvolution::weigh(LayerOps& ops, const float* input, int64_t rows) {
  reserve(ops, rows);
  ops.project(own_, input, weights_.data(), rows);
}

// From the last place of a block to its first, so that a place is read by later ones before it changes.
void BlockConvolution::apply(Side side, float* x, int64_t rows, int64_t block) {
  const int64_t hidden = sizes_.hidden, groups = sizes_.groups();
  for (int64_t row = rows - 1; row >= 0; --row) {
    const int64_t taps = std::min(sizes_.taps, row % block + 1);
    for (int64_t channel = 0; channel < hidden; ++channel) {
      const int64_t group = channel / sizes_.group;
      float sum = 0.0f;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t place = side * sizes_.taps + tap;
        const float weight = base_[static_cast<size_t>(place * hidden + channel)] +
                             weights_.data()[row * sizes_.own() + place * groups + group];
        sum += weight * x[(row - tap) * hidden + channel];
      }
      x[row * hidden + channel] = sum;
    }
  }
}

}  // namespace outrider
