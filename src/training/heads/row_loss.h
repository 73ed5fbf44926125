// SPDX-License-Identifier: Apache-2.0
// Losses over rows of logits, which are computed a slice at a time; rows of weight 0 are skipped.
#pragma once

#include <torch/types.h>

namespace outrider::training {

struct RowLoss {
  at::Tensor loss;  // scalar: weighted mean over the rows, differentiable in hidden and head
  // f32 [rows]: 1 where the likeliest token is the one to learn; 0 for rows of weight 0
  at::Tensor agrees;
  at::Tensor accepted = {};  // f32 [rows]: the mass that both distributions share, of mixed_loss(); else 0
};

// Rows of a drafter's outputs. `hidden` and `head` have one type, bf16 or f32, also in TargetDistribution.
struct LossOfRows {
  at::Tensor hidden;     // [rows, size]
  at::Tensor head;       // [vocab, size]: logits are hidden head^T + bias
  at::Tensor weight;     // f32 [rows]
  at::Tensor bias = {};  // [vocab] in the type of `head`, or undefined
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

// The target's logits at some rows of a text, which several steps of a drafter learn from.
struct TargetLogits {
  at::Tensor logits;  // [kept rows, vocab]
  at::Tensor place;   // int64 [rows]: the row of `logits`; 0 for rows that are not kept
};
// Keeps the rows of `hidden`, [rows, size], with a weight other than 0.
TargetLogits target_logits(const LossOfRows& rows);
// The loss of a drafter's distribution q, where p is the target's. alpha, the sum of min(p, q), is the share
// of sampled drafts that are accepted.
enum class Objective {
  kDivergence,  // KL(p || q)
  kVariation,   // 1 - alpha, the total variation distance
  kAcceptance,  // -log(alpha)
  kBlend,       // lambda KL(p || q) + (1 - lambda) (1 - alpha), where lambda = exp(-3 alpha) is no variable
};
// Learns from the rows of target.logits at target.place, int64 [rows].
RowLoss distribution_loss(const LossOfRows& rows, const TargetLogits& target, double hard,
                          Objective objective = Objective::kDivergence);

// Weights of the cross-entropy of the text's token, and of the sum of |softmax(logits) - distribution|.
struct TokenAndDistance {
  double token = 0.0, distance = 0.0;
};
// Both losses together; distribution.hard and divergence do not count. `agrees` compares likeliest tokens.
RowLoss mixed_loss(const LossOfRows& rows, const TargetDistribution& distribution, const at::Tensor& tokens,
                   const TokenAndDistance& weights);

// The cross-entropy of tokens, int64 [rows].
RowLoss token_loss(const LossOfRows& rows, const at::Tensor& tokens);

}  // namespace outrider::training
