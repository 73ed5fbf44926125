// SPDX-License-Identifier: Apache-2.0
#include "training/heads/vocabulary/loss_vocabulary.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "training/core/decoder_layers.h"

namespace outrider::training {

constexpr double kSampledShare = 0.2;  // of the compared tokens

at::Tensor LossTokens::rows_of(const at::Tensor& head) const {
  return ids.defined() ? head.index_select(0, ids) : head;
}

at::Tensor LossTokens::rows_of_draft_head(const at::Tensor& head) const {
  return rows.defined() ? head.index_select(0, rows) : head;
}

at::Tensor frequent_tokens(const std::vector<int64_t>& counts, int64_t wanted) {
  std::vector<int64_t> order(counts.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return counts[static_cast<size_t>(a)] > counts[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(wanted));
  std::sort(order.begin(), order.end());
  return at::from_blob(order.data(), {wanted}, at::kLong).clone();
}

LossVocabulary::LossVocabulary(const std::vector<int64_t>& counts, at::Tensor draft_tokens, int64_t compared)
    : draft_tokens_(std::move(draft_tokens)) {
  std::vector<int64_t> own = counts;  // of the draft tokens
  if (draft_tokens_.defined()) {
    own.resize(static_cast<size_t>(draft_tokens_.numel()));
    for (size_t row = 0; row < own.size(); ++row)
      own[row] = counts[static_cast<size_t>(draft_tokens_.data_ptr<int64_t>()[row])];
  }
  const auto size = static_cast<int64_t>(own.size());
  if (compared == 0 || compared >= size) return;
  sampled_ = static_cast<int64_t>(kSampledShare * static_cast<double>(compared));
  frequent_ = frequent_tokens(own, compared - sampled_);
  is_rare_ = at::ones({size}, at::kBool).index_fill_(0, frequent_, false);
}

at::Tensor LossVocabulary::lessons(const HeadBatch& batch) const {
  const at::Tensor counted = shifted(batch.counted, 1);
  if (!draft_tokens_.defined()) return counted;
  return counted * at::isin(batch.likeliest, draft_tokens_.to(batch.likeliest.device())).to(at::kFloat);
}

at::Tensor LossVocabulary::chosen_rows(const HeadBatch& batch) const {
  if (!draft_tokens_.defined()) return at::empty({0}, at::kLong);
  const at::Tensor ids = batch.likeliest.index({lessons(batch).gt(0)}).cpu();
  const at::Tensor is_chosen =
      at::zeros_like(is_rare_).index_fill_(0, at::searchsorted(draft_tokens_, ids), true);
  return is_chosen.logical_and(is_rare_).nonzero().squeeze(1);
}

LossTokens LossVocabulary::all(const at::Tensor& like) const {
  return {draft_tokens_.defined() ? draft_tokens_.to(like.device()) : at::Tensor(), {}};
}

LossTokens LossVocabulary::compared(const HeadBatch& batch, const at::Tensor& like) const {
  if (batch.measures || !frequent_.defined()) return all(like);
  at::Generator generator = seeded_generator(batch.seed);
  at::Tensor chosen = chosen_rows(batch);
  chosen = chosen.narrow(0, 0, std::min(chosen.numel(), sampled_ / 2));  // the rest stands for all others
  const at::Tensor others = is_rare_.index_fill(0, chosen, false).nonzero().squeeze(1);
  const int64_t drawn = sampled_ - chosen.numel();
  const at::Tensor order = at::randperm(others.numel(), generator, at::kLong).narrow(0, 0, drawn);
  const double stands_for = static_cast<double>(others.numel()) / static_cast<double>(drawn);
  const at::Tensor rows = at::cat({frequent_, chosen, others.index_select(0, order)});
  const at::Tensor bias =
      at::cat({at::zeros({rows.numel() - drawn}), at::full({drawn}, std::log(stands_for))});
  const at::Tensor ids = draft_tokens_.defined() ? draft_tokens_.index_select(0, rows) : rows;
  return {ids.to(like.device()), bias.to(like.options()), rows.to(like.device())};
}

void add_loss_vocab_option(CLI::App& command, int64_t& compared) {
  command
      .add_option("--loss-vocab", compared,
                  "tokens that a step compares: the most frequent ones, and a sample of the others; 0: all")
      ->check(CLI::NonNegativeNumber);
}

}  // namespace outrider::training
