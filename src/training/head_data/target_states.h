// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace outrider::training {

// The target's inner state that a drafter reads, besides the hidden states after the final norm.
struct FeatureNeeds {
  std::vector<int64_t> taps = {};    // rising; tap i is the residual stream that enters layer i
  bool keys_values = false;          // cached keys (rotated) and values of all layers
  bool likeliest = false;            // the target's likeliest tokens
  at::ScalarType type = at::kFloat;  // f32 or bf16: type to which the states are rounded
};

// The target's state for the tokens of one window, on the device where it was computed.
struct TargetStates {
  at::Tensor hidden;          // [tokens, hidden]: after the final norm
  at::Tensor features;        // [tokens, taps * hidden], or undefined
  at::Tensor keys_values;     // [tokens, layers, kv_heads, 2, head_dim] (keys first), or undefined
  at::Tensor likeliest = {};  // int64 [tokens]: the likeliest token after each, or undefined
};

}  // namespace outrider::training
