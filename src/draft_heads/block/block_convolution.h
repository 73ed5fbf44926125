// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "draft_heads/head_file.h"
#include "models/backend/layer_backend.h"

namespace outrider {

// A convolution over the places of a block with weights that depend on the place (DFlash2). It stands around
// a part of a layer, once before it and once after it. Channel c of place t becomes the sum over taps o of
// (base[side][o][c] + own[t][side][o][c / group]) * x[t - o][c], where x is 0 before the block.
class BlockConvolution {
 public:
  struct Sizes {
    int64_t hidden = 0, taps = 0, group = 0;

    int64_t groups() const { return hidden / group; }
    int64_t own() const { return 2 * taps * groups(); }  // weights that belong to a place
  };
  enum Side { kBefore, kAfter };

  explicit BlockConvolution(LayerBackend& backend) : backend_(backend) {}

  // `prefix`: "layers.0.attention_conv."
  static void append_tensors(const std::string& prefix, const Sizes& sizes, std::vector<HeadTensor>& tensors);
  // The object must not move before the loader has packed all.
  Status plan(const std::string& prefix, const Sizes& sizes, const HeadFile& head, WeightLoader& loader);
  void reserve(int64_t rows);

  // Makes the weights of the places from their inputs [rows, hidden], the rows of blocks of `block` places.
  void weigh(FloatAddress input, int64_t rows);
  // Changes these rows in place. Precondition: weigh() of the same rows.
  void apply(Side side, FloatAddress x, int64_t rows, int64_t block);

 private:
  LayerBackend& backend_;
  Sizes sizes_;
  std::vector<float> base_;        // [2, taps, hidden]
  Projection own_;                 // [own(), hidden]
  BackendRows weights_{backend_};  // [rows, 2, taps, groups]
};

}  // namespace outrider
