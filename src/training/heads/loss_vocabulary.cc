// SPDX-License-Identifier: Apache-2.0
#include "training/heads/loss_vocabulary.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "training/core/decoder_layers.h"

namespace outrider::training {

constexpr double kSampledShare = 0.2;  // of the compared tokens

at::Tensor LossTokens::rows_of(const at::Tensor& head) const {
  return ids.defined() ? head.index_select(0, ids) : head;
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

LossVocabulary::LossVocabulary(const std::vector<int64_t>& counts, int64_t compared) {
  const auto vocab = static_cast<int64_t>(counts.size());
  if (compared == 0 || compared >= vocab) return;
  sampled_ = static_cast<int64_t>(kSampledShare * static_cast<double>(compared));
  frequent_ = frequent_tokens(counts, compared - sampled_);
  rare_ = at::ones({vocab}, at::kBool).index_fill_(0, frequent_, false).nonzero().squeeze(1);
}

LossTokens LossVocabulary::sample(uint64_t seed, const at::Tensor& like) const {
  if (!frequent_.defined()) return {};
  at::Generator generator = seeded_generator(seed);
  const at::Tensor chosen =
      rare_.index_select(0, at::randperm(rare_.numel(), generator, at::kLong).narrow(0, 0, sampled_));
  const double stands_for = static_cast<double>(rare_.numel()) / static_cast<double>(sampled_);
  const at::Tensor bias =
      at::cat({at::zeros({frequent_.numel()}), at::full({sampled_}, std::log(stands_for))});
  return {at::cat({frequent_, chosen}).to(like.device()), bias.to(like.options())};
}

void add_loss_vocab_option(CLI::App& command, int64_t& compared) {
  command
      .add_option("--loss-vocab", compared,
                  "tokens that a step compares: the most frequent ones, and a sample of the others; 0: all")
      ->check(CLI::NonNegativeNumber);
}

}  // namespace outrider::training
