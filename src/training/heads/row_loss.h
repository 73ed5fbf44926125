// SPDX-License-Identifier: Apache-2.0
// Losses over rows of logits, which are computed a slice at a time; rows of weight 0 are skipped.
#pragma once

#include <torch/types.h>

namespace outrider::training {

struct RowLoss {
  at::Tensor loss;  // scalar: weighted mean over the rows, differentiable in hidden and head
  // f32 [rows]: 1 where the likeliest token is the one to learn; 0 for rows of weight 0
  at::Tensor agrees;
};

// Rows of a drafter's outputs. `hidden` and `head` have one type, bf16 or f32, also in TargetDistribution.
struct LossOfRows {
  at::Tensor hidden;  // [rows, size]
  at::Tensor head;    // [vocab, size]: logits are hidden head^T
  at::Tensor weight;  // f32 [rows]
};

// The direction of the KL divergence. Forward, KL(distribution || softmax(logits)), makes the drafter cover
// all tokens the distribution allows; reverse, KL(softmax(logits) || distribution), concentrates it on the
// likeliest.
enum class Divergence { kForward, kReverse };

// The distribution to learn: (1 - hard) softmax(hidden head^T) + hard one-hot(its likeliest token).
struct TargetDistribution {
  at::Tensor hidden;  // [rows, target size]
  at::Tensor head;    // [vocab, target size]
  double hard = 0.0;
  Divergence divergence = Divergence::kForward;
};
RowLoss distribution_loss(const LossOfRows& rows, const TargetDistribution& distribution);

// The cross-entropy of tokens, int64 [rows].
RowLoss token_loss(const LossOfRows& rows, const at::Tensor& tokens);

// The likeliest token of every row, int64 [rows]; hidden [rows, size], head [vocab, size].
at::Tensor likeliest_tokens(const at::Tensor& hidden, const at::Tensor& head);

}  // namespace outrider::training
