// SPDX-License-Identifier: Apache-2.0
#include "training/heads/row_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "training/core/decoder_layers.h"

namespace outrider::training {
namespace {

constexpr int64_t kRows = 37, kHidden = 12, kVocab = 50;

struct Inputs {
  at::Tensor hidden, head;  // of the drafter, with gradients
  TargetLogits target;
  at::Tensor weight;
};

Inputs make_inputs(uint64_t seed, double sharpness) {
  at::Generator generator = seeded_generator(seed);
  Inputs inputs{.hidden = normal_weight({kRows, kHidden}, sharpness, generator),
                .head = normal_weight({kVocab, kHidden}, 1.0, generator),
                .target = {.logits = normal_weight({kRows, kVocab}, 2.0 * sharpness, generator),
                           .place = at::arange(kRows, at::kLong)},
                .weight = at::rand({kRows}, generator)};
  inputs.weight[3] = 0;
  inputs.hidden.requires_grad_(true);
  inputs.head.requires_grad_(true);
  return inputs;
}

// The definitions as they stand in the paper, for PyTorch's own gradients.
at::Tensor loss_as_defined(const Inputs& inputs, double hard, Objective objective) {
  const at::Tensor q = at::softmax(at::linear(inputs.hidden, inputs.head), -1);
  at::Tensor p = at::softmax(inputs.target.logits, -1);
  p = (1 - hard) * p + hard * at::one_hot(p.argmax(-1), kVocab);
  const at::Tensor divergence = (p * (p.log() - q.log())).sum(-1), alpha = at::minimum(p, q).sum(-1);
  const at::Tensor lambda = (alpha.detach() * -3).exp();
  at::Tensor loss = divergence;
  if (objective == Objective::kVariation) loss = 1 - alpha;
  if (objective == Objective::kAcceptance) loss = -alpha.log();
  if (objective == Objective::kBlend) loss = lambda * divergence + (1 - lambda) * (1 - alpha);
  return (loss * inputs.weight).sum() / inputs.weight.sum();
}

TEST(RowLoss, ObjectivesAndGradientsAreThoseOfPyTorch) {
  for (const Objective objective :
       {Objective::kDivergence, Objective::kVariation, Objective::kAcceptance, Objective::kBlend}) {
    for (const double hard : {0.0, 0.3}) {
      for (const double sharpness : {0.3, 1.0, 4.0}) {
        SCOPED_TRACE(testing::Message() << static_cast<int>(objective) << " " << hard << " " << sharpness);
        const Inputs a = make_inputs(5, sharpness), b = make_inputs(5, sharpness);
        const RowLoss found = distribution_loss({.hidden = a.hidden, .head = a.head, .weight = a.weight},
                                                a.target, hard, objective);
        const at::Tensor wanted = loss_as_defined(b, hard, objective);
        EXPECT_NEAR(found.loss.item<double>(), wanted.item<double>(), 1e-4 * (1 + wanted.item<double>()));
        found.loss.backward();
        wanted.backward();
        EXPECT_TRUE(at::allclose(a.hidden.grad(), b.hidden.grad(), 1e-3, 1e-5));
        EXPECT_TRUE(at::allclose(a.head.grad(), b.head.grad(), 1e-3, 1e-5));
        EXPECT_EQ(found.agrees[3].item<float>(), 0);
      }
    }
  }
}

}  // namespace
}  // namespace outrider::training
