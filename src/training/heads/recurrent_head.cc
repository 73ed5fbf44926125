// SPDX-License-Identifier: Apache-2.0
#include "training/heads/recurrent_head.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "training/head_data/frozen_target.h"
#include "training/heads/row_loss.h"

namespace outrider::training {
namespace {

// f32 [windows, length]: 1 where the target's likeliest token after `hidden` [windows, length, hidden] is one
// of `kept`, the tokens that can be drafted; undefined if all can.
at::Tensor draftable(const at::Tensor& hidden, const at::Tensor& output_head, const at::Tensor& kept) {
  if (!kept.defined()) return {};
  const at::Tensor knows =
      at::zeros({output_head.size(0)}, hidden.options().dtype(at::kFloat)).index_fill_(0, kept, 1.0);
  return knows.index_select(0, likeliest_tokens(hidden.flatten(0, 1), output_head))
      .view({hidden.size(0), hidden.size(1)});
}

}  // namespace

void add_unroll_options(CLI::App& command, UnrollOptions& unroll) {
  command.add_option("--unroll", unroll.steps, "steps it is unrolled on its own outputs")
      ->check(CLI::Range(1, 16));
  command.add_option("--mlp", unroll.mlp, "size of the layer's MLP; 0: as the target's")
      ->check(CLI::NonNegativeNumber);
}

void add_decay_option(CLI::App& command, UnrollOptions& unroll) {
  command.add_option("--decay", unroll.decay, "weight of each step relative to the one before")
      ->check(CLI::Range(0.0, 1.0));
}

RecurrentHead::RecurrentHead(const HeadContext& context, const UnrollOptions& unroll)
    : options_(context.options), device_(context.device), unroll_(unroll) {
  const FrozenTarget& target = context.target;
  const auto shared = [&](const at::Tensor& weight) { return weight.to(device_).to(options_.products); };
  const int64_t steps = std::max(unroll.steps, options_.measured_depth);
  LayerShape shape = layer_shape(target.config());
  if (unroll.mlp > 0) shape.ffn = unroll.mlp;
  shared_ = {.embedding = shared(target.embedding()),
             .output_head = shared(target.output_head()),
             .rotations = make_rotations(target.config(), options_.context + steps, device_),
             .shape = shape};
}

nlohmann::json RecurrentHead::unroll_fingerprint() const {
  return {{"steps", unroll_.steps},
          {"decay", unroll_.decay},
          {"distribution_weight", unroll_.distribution_weight},
          {"feature_weight", unroll_.feature_weight}};
}

HeadLoss RecurrentHead::loss(const HeadBatch& batch) const {
  const int64_t windows = batch.tokens.size(0), length = batch.tokens.size(1), rows = windows * length;
  const auto flat = [&](const at::Tensor& x) { return x.reshape({rows, -1}); };
  const at::Tensor hidden = batch.hidden.to(type());
  const at::Tensor kept = draft_tokens();
  const at::Tensor distribution_head =
      kept.defined() ? shared_.output_head.index_select(0, kept) : shared_.output_head;
  const at::Tensor can_draft = draftable(hidden, shared_.output_head, kept);
  const at::Tensor head = draft_head();
  const UnrolledLayer place{shape(), layer(), shared_.rotations, windows, length};
  const int64_t steps = batch.measures ? std::max(unroll_.steps, options_.measured_depth) : unroll_.steps;

  HeadLoss result{.loss = at::zeros({}, batch.counted.options()), .depths = {}};
  UnrolledMemory memory;
  at::Tensor state = first_state(batch);
  for (int64_t i = 0; i < std::min(steps, length - 2); ++i) {
    const at::Tensor embeddings = at::embedding(shared_.embedding, shifted(batch.tokens, 1 + i).flatten());
    const Outputs outputs = step(state, embeddings, place, memory);
    state = outputs.state;
    const at::Tensor counts = shifted(batch.counted, 2 + i);
    const at::Tensor weight = can_draft.defined() ? counts * shifted(can_draft, 1 + i) : counts;
    const RowLoss distribution = distribution_loss(
        {.hidden = outputs.normed, .head = head, .weight = weight.flatten()},
        {.hidden = flat(shifted(hidden, 1 + i)), .head = distribution_head, .hard = options_.hard_share});
    result.depths.push_back({distribution.agrees.view({windows, length}), counts});
    if (i >= unroll_.steps) continue;
    at::Tensor loss = unroll_.distribution_weight * distribution.loss;
    if (unroll_.feature_weight > 0.0) {
      const at::Tensor distance =
          at::smooth_l1_loss(state, flat(shifted(batch.hidden, 1 + i)), at::Reduction::None).mean(-1);
      loss =
          loss + unroll_.feature_weight * (distance * counts.flatten()).sum() / counts.sum().clamp_min(1.0);
    }
    result.loss = result.loss + std::pow(unroll_.decay, static_cast<double>(i)) * loss;
  }
  return result;
}

}  // namespace outrider::training
