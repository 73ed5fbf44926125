// SPDX-License-Identifier: Apache-2.0
#include "training/heads/recurrent_head.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "training/head_data/frozen_target.h"

namespace outrider::training {
namespace {

// The mean smooth L1 distance of states, [rows, hidden], from the target's over the rows that count.
at::Tensor feature_loss(const at::Tensor& state, const at::Tensor& wanted, const at::Tensor& counts) {
  const at::Tensor distance =
      at::smooth_l1_loss(state, wanted.reshape(state.sizes()), at::Reduction::None).mean(-1);
  return (distance * counts.flatten()).sum() / counts.sum().clamp_min(1.0);
}

}  // namespace

void add_unroll_options(CLI::App& command, UnrollOptions& unroll) {
  command.add_option("--unroll", unroll.steps, "steps it is unrolled on its own outputs")
      ->check(CLI::Range(1, 16));
  command
      .add_option("--growth", unroll.growth,
                  "share of the training in which the unrolled steps grow from one to all of them")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--mlp", unroll.mlp, "size of the layer's MLP; 0: as the target's")
      ->check(CLI::NonNegativeNumber);
}

void add_decay_option(CLI::App& command, UnrollOptions& unroll) {
  command.add_option("--decay", unroll.decay, "weight of each step relative to the one before")
      ->check(CLI::Range(0.0, 1.0));
}

void add_objective_option(CLI::App& command, UnrollOptions& unroll) {
  const std::map<std::string, Objective> names = {{"kl", Objective::kDivergence},
                                                  {"tv", Objective::kVariation},
                                                  {"nla", Objective::kAcceptance},
                                                  {"lk", Objective::kBlend}};
  command
      .add_option(
          "--loss", unroll.objective,
          "kl: divergence; tv: total variation, 1 - alpha; nla: -log(alpha); lk: a blend of the first "
          "two (arXiv 2602.23881)")
      ->transform(CLI::CheckedTransformer(names))
      ->default_str("kl");
}

RecurrentHead::RecurrentHead(const HeadContext& context, const UnrollOptions& unroll,
                             const at::Tensor& draft_tokens)
    : options_(context.options),
      device_(context.device),
      unroll_(unroll),
      vocabulary_(context.token_counts, draft_tokens, unroll.loss_vocab) {
  const FrozenTarget& target = context.target;
  const auto shared = [&](const at::Tensor& weight) { return weight.to(device_).to(options_.products); };
  const int64_t steps = std::max(unroll.steps, options_.measured_depth);
  LayerShape shape = layer_shape(target.config());
  if (unroll.mlp > 0) shape.ffn = unroll.mlp;
  shared_ = {.embedding = shared(target.embedding()),
             .output_head = shared(target.output_head()),
             .rotations = make_rotations(shape.rope, shape.head_dim, options_.context + steps, device_),
             .shape = shape,
             .logit_cap = target.config().logit_softcap};
}

nlohmann::json RecurrentHead::unroll_fingerprint() const {
  return {{"steps", unroll_.steps},
          {"growth", unroll_.growth},
          {"loss_vocab", unroll_.loss_vocab},
          {"decay", unroll_.decay},
          {"objective", static_cast<int>(unroll_.objective)},
          {"distribution_weight", unroll_.distribution_weight},
          {"feature_weight", unroll_.feature_weight}};
}

int64_t RecurrentHead::trained_steps(const HeadBatch& batch) const {
  if (batch.measures || unroll_.growth == 0.0) return unroll_.steps;
  const double grown = batch.progress / unroll_.growth * static_cast<double>(unroll_.steps);
  return std::min(unroll_.steps, 1 + static_cast<int64_t>(grown));
}

// The target's logits at the rows of weight `wanted`, f32 [windows, length].
TargetLogits RecurrentHead::target(const HeadBatch& batch, const LossTokens& tokens,
                                   const at::Tensor& wanted) const {
  const at::NoGradGuard no_grad;
  const double cap = shared_.logit_cap;
  TargetLogits target = target_logits({.hidden = batch.hidden.flatten(0, 1).to(type()),
                                       .head = tokens.rows_of(shared_.output_head),
                                       .weight = wanted.flatten(),
                                       .bias = cap > 0 ? at::Tensor() : tokens.bias});
  if (cap == 0 || !target.logits.defined()) return target;
  target.logits = ((target.logits.to(at::kFloat) / cap).tanh() * cap).to(type());
  if (tokens.bias.defined()) target.logits += tokens.bias;
  return target;
}

HeadLoss RecurrentHead::loss(const HeadBatch& batch) const {
  const int64_t windows = batch.tokens.size(0), length = batch.tokens.size(1);
  const at::Tensor wanted = vocabulary_.lessons(batch);
  const LossTokens tokens = vocabulary_.compared(batch, shared_.output_head);
  const TargetLogits target_rows = target(batch, tokens, wanted);
  const at::Tensor places = target_rows.place.view({windows, length}), head = draft_head(tokens);
  const UnrolledLayer place{shape(), layer(), shared_.rotations, windows, length};
  const int64_t trained = trained_steps(batch);
  const int64_t steps = batch.measures ? std::max(trained, options_.measured_depth) : trained;

  HeadLoss result{.loss = at::zeros({}, batch.counted.options()), .depths = {}};
  UnrolledMemory memory;
  at::Tensor state = first_state(batch);
  const MaskedPlace masked = masked_place();
  if (masked.state.defined()) result.loss = (masked.state * 0).sum();  // a single step does not read it
  for (int64_t i = 0; i < std::min(steps, length - 2); ++i) {
    at::Tensor read = shifted(batch.tokens, 1 + i).flatten();
    if (i > 0 && masked.state.defined()) {
      read = at::full_like(read, masked.token);
      state = masked.state.expand(state.sizes());
    }
    const at::Tensor embeddings = at::embedding(shared_.embedding, read);
    const Outputs outputs = step(state, embeddings, place, memory);
    state = outputs.state;
    const at::Tensor counts = shifted(batch.counted, 2 + i);
    const RowLoss distribution = distribution_loss({.hidden = outputs.normed,
                                                    .head = head,
                                                    .weight = shifted(wanted, 1 + i).flatten(),
                                                    .bias = tokens.bias},
                                                   {target_rows.logits, shifted(places, 1 + i).flatten()},
                                                   options_.hard_share, unroll_.objective);
    result.depths.push_back({distribution.agrees.view({windows, length}), counts});
    if (i >= trained) continue;
    at::Tensor loss = unroll_.distribution_weight * distribution.loss;
    if (unroll_.feature_weight > 0.0)
      loss = loss + unroll_.feature_weight * feature_loss(state, shifted(batch.hidden, 1 + i), counts);
    result.loss = result.loss + std::pow(unroll_.decay, static_cast<double>(i)) * loss;
  }
  return result;
}

}  // namespace outrider::training
