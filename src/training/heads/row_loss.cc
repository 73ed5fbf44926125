// SPDX-License-Identifier: Apache-2.0
#include "training/heads/row_loss.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "training/core/tensor_ops.h"

namespace outrider::training {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Rows of logits that are in memory at a time. The number of rows is padded to a multiple of kRowUnit, for
// the reason given at kLengthUnit.
constexpr int64_t kLogitRows = 1024;
constexpr int64_t kRowUnit = 256;

// The target's distribution, f32, with a share moved to its likeliest token `top`.
at::Tensor lesson_distribution(const at::Tensor& teacher, const at::Tensor& top, double hard) {
  const at::Tensor soft = at::softmax(teacher.to(at::kFloat), -1);
  if (hard == 0.0) return soft;
  return (soft * (1.0 - hard)).scatter_add_(1, top, at::full(top.sizes(), hard, soft.options()));
}

// The objectives that look at alpha. Raising a logit by d moves alpha by d * share * (is_short - the sum of
// share * is_short), where is_short tells the tokens with share < distribution.
LossRows acceptance_lesson(const at::Tensor& logits, const at::Tensor& teacher, double hard,
                           Objective objective) {
  constexpr double kLeastAlpha = std::numeric_limits<float>::min(), kDecay = 3.0;
  const at::Tensor top = teacher.argmax(-1, /*keepdim=*/true);
  const at::Tensor distribution = lesson_distribution(teacher, top, hard);
  const at::Tensor own = at::log_softmax(logits.to(at::kFloat), -1), share = own.exp();
  const at::Tensor alpha = at::minimum(share, distribution).sum(-1, /*keepdim=*/true).clamp_min(kLeastAlpha);
  const at::Tensor is_short = share.lt(distribution).to(at::kFloat);
  const at::Tensor rise = share * (is_short - (share * is_short).sum(-1, /*keepdim=*/true));
  at::Tensor loss = 1.0 - alpha, gradient = -rise;
  if (objective == Objective::kAcceptance) {
    loss = -alpha.log();
    gradient = -rise / alpha;
  } else if (objective == Objective::kBlend) {
    const at::Tensor weight = (alpha * -kDecay).exp();
    const at::Tensor divergence =
        (distribution * (distribution.clamp_min(std::numeric_limits<float>::min()).log() - own))
            .sum(-1, /*keepdim=*/true);
    loss = weight * divergence + (1.0 - weight) * loss;
    gradient = weight * (share - distribution) + (1.0 - weight) * gradient;
  }
  return {loss.squeeze(1), logits.argmax(-1, /*keepdim=*/true).eq(top).squeeze(1).to(at::kFloat),
          gradient.to(logits.scalar_type())};
}

// KL(softmax(logits) || distribution) with its gradient.
LossRows reverse_distillation(const at::Tensor& logits, const at::Tensor& teacher, double hard) {
  const at::Tensor top = teacher.argmax(-1, /*keepdim=*/true);
  at::Tensor distribution = at::log_softmax(teacher.to(at::kFloat), -1);
  if (hard > 0.0) {
    distribution = distribution.exp_()
                       .mul_(1.0 - hard)
                       .scatter_add_(1, top, at::full(top.sizes(), hard, distribution.options()));
    distribution.clamp_min_(std::numeric_limits<float>::min()).log_();
  }
  const at::Tensor own = at::log_softmax(logits.to(at::kFloat), -1), share = own.exp();
  const at::Tensor excess = own - distribution, loss = (share * excess).sum(-1, /*keepdim=*/true);
  return {loss.squeeze(1), logits.argmax(-1, /*keepdim=*/true).eq(top).squeeze(1).to(at::kFloat),
          (share * (excess - loss)).to(logits.scalar_type())};
}

struct SharedMass {
  LossRows rows;
  at::Tensor accepted;  // f32 [rows]
};

SharedMass mixed_lesson(const at::Tensor& logits, const at::Tensor& teacher, const at::Tensor& tokens,
                        const TokenAndDistance& weights) {
  const at::Tensor own = at::log_softmax(logits.to(at::kFloat), -1), share = own.exp();
  const at::Tensor excess = share - at::softmax(teacher.to(at::kFloat), -1);
  const at::Tensor column = tokens.unsqueeze(1), distance = excess.abs().sum(-1);
  // The gradient of the sum of |share - p| is share * (sign - the mean of signs under share).
  const at::Tensor sign = excess.sign();
  at::Tensor gradient = share * (sign - (share * sign).sum(-1, /*keepdim=*/true)) * weights.distance;
  gradient.add_(share, weights.token);
  gradient.scatter_add_(1, column, at::full(column.sizes(), -weights.token, gradient.options()));
  const at::Tensor loss = distance * weights.distance - own.gather(1, column).squeeze(1) * weights.token;
  return {{loss, logits.argmax(-1).eq(teacher.argmax(-1)).to(at::kFloat), gradient.to(logits.scalar_type())},
          1.0 - distance / 2.0};
}

// The rows' targets: both with `mix`, else `tokens` if defined, otherwise the distribution given by the
// target's logits at `place`, or by its `hidden` and `head`.
struct Lesson {
  at::Tensor hidden = {}, head = {};
  double hard = 0.0;
  Divergence divergence = Divergence::kForward;
  Objective objective = Objective::kDivergence;
  at::Tensor tokens = {};
  at::Tensor logits = {}, place = {};
  std::optional<TokenAndDistance> mix = {};

  at::Tensor teacher(int64_t first, int64_t count) const {
    if (logits.defined()) return logits.index_select(0, place.narrow(0, first, count));
    return at::linear(hidden.narrow(0, first, count), head);
  }

  // Writes the rows' shares of accepted drafts to accepted, f32 [count], where both targets count.
  LossRows of(const at::Tensor& own, int64_t first, int64_t count, at::Tensor accepted) const {
    const TensorOps& ops = activation_ops(own);
    if (mix) {
      const SharedMass mixed = mixed_lesson(own, teacher(first, count), tokens.narrow(0, first, count), *mix);
      accepted.copy_(mixed.accepted);
      return mixed.rows;
    }
    if (objective != Objective::kDivergence)
      return acceptance_lesson(own, teacher(first, count), hard, objective);
    if (!tokens.defined()) {
      return divergence == Divergence::kForward ? ops.distillation(own, teacher(first, count), hard)
                                                : reverse_distillation(own, teacher(first, count), hard);
    }
    const at::Tensor wanted = tokens.narrow(0, first, count).contiguous();
    const at::Tensor agrees = own.argmax(-1).eq(wanted).to(at::kFloat);
    LossRows rows = ops.cross_entropy(own, wanted);
    rows.agree = agrees;
    return rows;
  }
};

struct WeightedLoss : Function<WeightedLoss> {
  // weight: f32 [rows], with a sum of 1. Returns {loss, agrees, accepted}.
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& head,
                               const LossOfRows& parts, const Lesson& lesson, bool learns_head) {
    const at::Tensor& weight = parts.weight;
    const int64_t rows = hidden.size(0);
    at::Tensor for_hidden = at::empty_like(hidden);
    at::Tensor for_head =
        learns_head ? at::zeros(head.sizes(), head.options().dtype(at::kFloat)) : at::Tensor();
    at::Tensor loss = at::zeros({}, weight.options()), agrees = at::empty({rows}, weight.options());
    const at::Tensor accepted = at::zeros({rows}, weight.options());
    for (int64_t first = 0; first < rows; first += kLogitRows) {
      const int64_t count = std::min(kLogitRows, rows - first);
      const at::Tensor slice = hidden.narrow(0, first, count);
      const at::Tensor share = weight.narrow(0, first, count);
      const LossRows result =
          lesson.of(at::linear(slice, head, parts.bias), first, count, accepted.narrow(0, first, count));
      loss.add_(result.loss.dot(share));
      agrees.narrow(0, first, count).copy_(result.agree);
      const at::Tensor column = share.unsqueeze(1);
      for_hidden.narrow(0, first, count).copy_(at::matmul(result.gradient, head).to(at::kFloat) * column);
      if (learns_head) {
        const at::Tensor weighted = (slice.to(at::kFloat) * column).to(hidden.scalar_type());
        for_head.add_(at::matmul(result.gradient.t(), weighted));
      }
    }
    context->save_for_backward({for_hidden, for_head});
    context->mark_non_differentiable({agrees, accepted});
    return {loss, agrees, accepted};
  }

  static variable_list backward(AutogradContext* context, variable_list upstream) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &for_hidden = saved[0], &for_head = saved[1];
    const auto scaled = [&](const at::Tensor& gradient) {
      return gradient.defined() ? (gradient * upstream[0]).to(for_hidden.scalar_type()) : at::Tensor();
    };
    return {scaled(for_hidden), scaled(for_head), {}, {}, {}};
  }
};

// The rows with a weight other than 0, and how many they are. The first one again fills the last unit.
std::pair<at::Tensor, int64_t> counted_rows(const at::Tensor& weight) {
  const at::Tensor index = weight.nonzero().squeeze(1);
  const int64_t counted = index.numel(), missing = (kRowUnit - counted % kRowUnit) % kRowUnit;
  if (counted == 0) return {index, 0};
  return {at::cat({index, index.narrow(0, 0, 1).expand(missing)}), counted};
}

// The loss over the rows with a weight other than 0.
RowLoss loss_of_rows(const LossOfRows& rows, Lesson lesson) {
  const auto [index, counted] = counted_rows(rows.weight);
  RowLoss result{at::zeros({}, rows.weight.options()), at::zeros_like(rows.weight),
                 at::zeros_like(rows.weight)};
  if (counted == 0) return {(rows.hidden * 0).sum().to(at::kFloat), result.agrees, result.accepted};
  const at::Tensor& picks = index;
  const auto picked = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.index_select(0, picks) : tensor;
  };
  lesson.hidden = picked(lesson.hidden);
  lesson.tokens = picked(lesson.tokens);
  lesson.place = picked(lesson.place);
  const at::Tensor weight = picked(rows.weight);
  weight.narrow(0, counted, index.numel() - counted).zero_();
  const LossOfRows parts{.hidden = {}, .head = {}, .weight = weight / weight.sum(), .bias = rows.bias};
  const variable_list outputs =
      WeightedLoss::apply(picked(rows.hidden), rows.head, parts, lesson, rows.head.requires_grad());
  result.loss = outputs[0];
  result.agrees.index_copy_(0, index, outputs[1]);
  result.accepted.index_copy_(0, index, outputs[2]);
  return result;
}

}  // namespace

RowLoss distribution_loss(const LossOfRows& rows, const TargetDistribution& distribution) {
  return loss_of_rows(rows, {.hidden = distribution.hidden,
                             .head = distribution.head,
                             .hard = distribution.hard,
                             .divergence = distribution.divergence});
}

TargetLogits target_logits(const LossOfRows& rows) {
  const auto [index, counted] = counted_rows(rows.weight);
  TargetLogits found{.logits = {}, .place = at::zeros(rows.weight.sizes(), index.options())};
  if (counted == 0) return found;
  found.logits = at::linear(rows.hidden.index_select(0, index), rows.head, rows.bias);
  const at::Tensor kept = index.narrow(0, 0, counted);
  found.place.index_copy_(0, kept, at::arange(counted, index.options()));
  return found;
}

RowLoss distribution_loss(const LossOfRows& rows, const TargetLogits& target, double hard,
                          Objective objective) {
  return loss_of_rows(rows,
                      {.hard = hard, .objective = objective, .logits = target.logits, .place = target.place});
}

RowLoss mixed_loss(const LossOfRows& rows, const TargetDistribution& distribution, const at::Tensor& tokens,
                   const TokenAndDistance& weights) {
  return loss_of_rows(
      rows, {.hidden = distribution.hidden, .head = distribution.head, .tokens = tokens, .mix = weights});
}

RowLoss token_loss(const LossOfRows& rows, const at::Tensor& tokens) {
  return loss_of_rows(rows, {.tokens = tokens});
}

}  // namespace outrider::training
