// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/kinds/short_convolution.h"
#include "models/backend/host/layer_ops.h"
#include "models/blocks/state_plan.h"
#include "models/weights/layer_place.h"
#include "models/weights/weight_list.h"

namespace outrider {

// A layer of LFM2: out(c * conv(b * x)), where b, c and x are the parts of one projection of the row. conv is
// a sum over the last few entries, for every number by itself. Its state is b * x of the last `taps count -
// 1` entries, and b * x of an entry is its update.
struct ConvolutionWeights {
  Projection input;         // [3 * size, hidden_size]: b, c, x
  std::vector<float> taps;  // [taps count, size], the oldest entry's first
  std::vector<float> bias;  // [size], or empty
  Projection output;        // [hidden_size, size]
  int64_t size = 0;         // numbers of a row

  int64_t tap_count() const { return std::ssize(taps) / size; }
};

Status load_convolution(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                        ConvolutionWeights& weights);

// The rows of a pass in one of these layers.
struct ConvolutionRows {
  float* projected = nullptr;  // [rows, 3 * size], changed in place
  float* y = nullptr;          // [rows, size]
  int64_t rows = 0;
};

// y = c * conv(b * x) for every row, after the entries before it in its sequence. Applies committed updates
// to the states, and updates of chains.
void convolve(const LayerOps& ops, const ConvolutionWeights& weights, const StatePlan& plan,
              const ConvolutionRows& rows, const LayerStates& states);

}  // namespace outrider
