// SPDX-License-Identifier: Apache-2.0
#include "training/heads/row_loss.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>

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

// The rows' targets: `tokens` if defined, otherwise the distribution given by the target's `hidden` and
// `head`.
struct Lesson {
  at::Tensor hidden, head;
  double hard = 0.0;
  Divergence divergence = Divergence::kForward;
  at::Tensor tokens;

  LossRows of(const at::Tensor& logits, int64_t first, int64_t count) const {
    const TensorOps& ops = activation_ops(logits);
    if (!tokens.defined()) {
      const at::Tensor teacher = at::linear(hidden.narrow(0, first, count), head);
      return divergence == Divergence::kForward ? ops.distillation(logits, teacher, hard)
                                                : reverse_distillation(logits, teacher, hard);
    }
    const at::Tensor wanted = tokens.narrow(0, first, count).contiguous();
    const at::Tensor agrees = logits.argmax(-1).eq(wanted).to(at::kFloat);
    LossRows rows = ops.cross_entropy(logits, wanted);
    rows.agree = agrees;
    return rows;
  }
};

struct WeightedLoss : Function<WeightedLoss> {
  // weight: f32 [rows], with a sum of 1. Returns {loss, agrees}.
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& head,
                               const at::Tensor& weight, const Lesson& lesson, bool learns_head) {
    const int64_t rows = hidden.size(0);
    at::Tensor for_hidden = at::empty_like(hidden);
    at::Tensor for_head =
        learns_head ? at::zeros(head.sizes(), head.options().dtype(at::kFloat)) : at::Tensor();
    at::Tensor loss = at::zeros({}, weight.options()), agrees = at::empty({rows}, weight.options());
    for (int64_t first = 0; first < rows; first += kLogitRows) {
      const int64_t count = std::min(kLogitRows, rows - first);
      const at::Tensor slice = hidden.narrow(0, first, count);
      const at::Tensor share = weight.narrow(0, first, count);
      const LossRows result = lesson.of(at::linear(slice, head), first, count);
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
    context->mark_non_differentiable({agrees});
    return {loss, agrees};
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

// The loss over the rows whose weight is not 0.
RowLoss loss_of_rows(const LossOfRows& rows, Lesson lesson) {
  at::Tensor index = rows.weight.nonzero().squeeze(1);
  const int64_t counted = index.numel();
  RowLoss result{at::zeros({}, rows.weight.options()), at::zeros_like(rows.weight)};
  if (counted == 0) return {(rows.hidden * 0).sum().to(at::kFloat), result.agrees};
  const int64_t missing =
      (kRowUnit - counted % kRowUnit) % kRowUnit;  // padded with the first row at weight 0
  index = at::cat({index, index.narrow(0, 0, 1).expand(missing)});
  const auto picked = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.index_select(0, index) : tensor;
  };
  lesson.hidden = picked(lesson.hidden);
  lesson.tokens = picked(lesson.tokens);
  const at::Tensor weight = picked(rows.weight);
  weight.narrow(0, counted, missing).zero_();
  const variable_list outputs = WeightedLoss::apply(picked(rows.hidden), rows.head, weight / weight.sum(),
                                                    lesson, rows.head.requires_grad());
  result.loss = outputs[0];
  result.agrees.index_copy_(0, index, outputs[1]);
  return result;
}

}  // namespace

RowLoss distribution_loss(const LossOfRows& rows, const TargetDistribution& distribution) {
  return loss_of_rows(rows, {.hidden = distribution.hidden,
                             .head = distribution.head,
                             .hard = distribution.hard,
                             .divergence = distribution.divergence,
                             .tokens = {}});
}

RowLoss token_loss(const LossOfRows& rows, const at::Tensor& tokens) {
  return loss_of_rows(rows, {.hidden = {}, .head = {}, .tokens = tokens});
}

at::Tensor likeliest_tokens(const at::Tensor& hidden, const at::Tensor& head) {
  const at::NoGradGuard no_grad;
  at::Tensor tokens = at::empty({hidden.size(0)}, hidden.options().dtype(at::kLong));
  for (int64_t first = 0; first < hidden.size(0); first += kLogitRows) {
    const int64_t count = std::min(kLogitRows, hidden.size(0) - first);
    tokens.narrow(0, first, count).copy_(at::linear(hidden.narrow(0, first, count), head).argmax(-1));
  }
  return tokens;
}

}  // namespace outrider::training
