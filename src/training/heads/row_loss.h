// SPDX-License-Identifier: Apache-2.0
// Losses over rows of logits that exist a slice at a time; rows without weight are not computed at all.
#pragma once

#include <torch/types.h>

namespace outrider::training {

struct RowLoss {
  at::Tensor loss;  // scalar: the rows' mean by weight, differentiable in hidden and head
  at::Tensor
      agrees;  // f32 [rows]: 1 where the likeliest token is the one to learn; 0 for rows without weight
};

// Rows of a drafter's outputs. All floating tensors but the weight are of one type, bf16 or f32.
struct LossOfRows {
  at::Tensor hidden;  // [rows, size]
  at::Tensor head;    // [vocab, size]: logits are hidden head^T
  at::Tensor weight;  // f32 [rows]
};

// Of the two distributions, which one the mean is taken over. Forward: KL(distribution || softmax(logits)),
// which covers what the distribution allows; reverse: KL(softmax(logits) || distribution), which keeps to
// what it prefers.
enum class Divergence { kForward, kReverse };

// The distribution is (1 - hard) softmax(target_hidden target_head^T) + hard one-hot(its likeliest).
struct TargetDistribution {
  at::Tensor hidden;  // [rows, target size]
  at::Tensor head;    // [vocab, target size]
  double hard = 0.0;
  Divergence divergence = Divergence::kForward;
};
RowLoss distribution_loss(const LossOfRows& rows, const TargetDistribution& distribution);

// Cross-entropy of tokens, int64 [rows].
RowLoss token_loss(const LossOfRows& rows, const at::Tensor& tokens);

// The likeliest token of every row, int64 [rows]; hidden [rows, size], head [vocab, size].
at::Tensor likeliest_tokens(const at::Tensor& hidden, const at::Tensor& head);

}  // namespace outrider::training
