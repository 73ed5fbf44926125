// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "outrider/result.h"
#include "training/head_data/head_data.h"
#include "training/head_data/state_source.h"

namespace outrider::training {

// One step's windows of text with the target's state, all on the training device. A window may be shorter
// than `length`: it is padded with token 0, which is never counted, and with zeros in the other tensors.
struct HeadBatch {
  at::Tensor tokens;   // int64 [windows, length]
  at::Tensor counted;  // f32 [windows, length]: 1 where predicting this token counts, as in responses
  at::Tensor known;    // f32 [windows, length]: 1 for tokens, 0 for padding
  // f32 [windows, length, hidden]: after the final norm; row t gives the target's distribution of token t + 1
  at::Tensor hidden;
  at::Tensor features;     // f32 [windows, length, taps * hidden], or undefined
  at::Tensor keys_values;  // f32 [windows, length, layers, kv_heads, 2, head_dim] (keys first), or undefined
  at::Tensor likeliest = {};  // int64 [windows, length]: the target's likeliest next token, or undefined
  uint64_t seed = 0;          // differs in every step; all random choices of loss() derive from it
  double progress = 0.0;      // share of the training that is done, 0 to 1
  bool measures = false;  // evaluation: loss() also measures depths that are not trained, without gradients
};

// Compares drafts that begin at every row with the target at one depth.
struct DepthAgreement {
  at::Tensor agrees;  // f32 [windows, length]: 1 where the draft is the target's likeliest token
  at::Tensor
      counts;  // f32 [windows, length]: 0 where the text has no token at this depth, or it does not count
  at::Tensor ranks =
      {};  // f32 [k] or undefined: share of the rows where the token was the drafter's guess number i
};

struct HeadLoss {
  at::Tensor loss;                     // scalar
  std::vector<DepthAgreement> depths;  // by depth of the draft, from 1
};

// Pads the windows to the longest, rounded up to a multiple of kLengthUnit, and adds the target's state, all
// on `device`. The caller sets seed and progress.
Result<HeadBatch> make_head_batch(std::span<const Window> windows, StateSource& source, at::Device device);

}  // namespace outrider::training
