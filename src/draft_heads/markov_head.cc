// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/markov_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace outrider {
namespace {

constexpr const char* kBefore = "markov_head.markov_w1";
constexpr const char* kBias = "markov_head.markov_w2";
constexpr const char* kConfidence = "confidence_head.proj.weight";
constexpr const char* kConfidenceBias = "confidence_head.proj.bias";

}  // namespace

Result<MarkovHead::Sizes> MarkovHead::read_sizes(const HeadFile& head, int64_t hidden, int64_t vocab,
                                                 int64_t draft_vocab) {
  OUTRIDER_TRY(const auto kind, head.config.root().string("markov_head_type"));
  if (kind && *kind != "vanilla") {
    return head.fail(fmt::format(
        "config.json: expected markov_head_type vanilla, found {}; other kinds are not supported", *kind));
  }
  OUTRIDER_TRY(const auto rank, head.config.root().integer("markov_rank"));
  if (!rank || *rank < 1)
    return head.fail(fmt::format("config.json: expected a markov_rank of at least 1, found {}",
                                 rank ? std::to_string(*rank) : "none"));
  Sizes sizes{.rank = *rank, .hidden = hidden, .vocab = vocab, .draft_vocab = draft_vocab};
  const auto confidence = head.tensors.find(kConfidence);
  sizes.has_confidence = confidence != head.tensors.end();
  sizes.reads_rank = sizes.has_confidence && confidence->second.shape != Shape{1, hidden};
  return sizes;
}

void MarkovHead::append_tensors(const HeadFile& head, const Sizes& sizes, std::vector<HeadTensor>& tensors) {
  tensors.push_back({.name = std::string(kBefore) + ".weight", .shape = {sizes.vocab, sizes.rank}});
  tensors.push_back({.name = std::string(kBias) + ".weight", .shape = {sizes.draft_vocab, sizes.rank}});
  if (!sizes.has_confidence) return;
  const int64_t inputs = sizes.hidden + (sizes.reads_rank ? sizes.rank : 0);
  tensors.push_back({.name = kConfidence, .shape = {1, inputs}});
  if (head.tensors.contains(kConfidenceBias)) tensors.push_back({.name = kConfidenceBias, .shape = {1}});
}

Status MarkovHead::plan(const HeadFile& head, WeightLoader& loader) {
  OUTRIDER_RETURN_IF_ERROR(loader.plan_table({kBefore, sizes_.vocab}, sizes_.rank, before_));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{kBias, sizes_.draft_vocab}}, sizes_.rank, /*bias=*/false, bias_));
  if (!sizes_.has_confidence) return {};
  OUTRIDER_TRY(confidence_, read_numbers(head, kConfidence));
  if (!head.tensors.contains(kConfidenceBias)) return {};
  OUTRIDER_TRY(const std::vector<float> bias, read_numbers(head, kConfidenceBias));
  confidence_bias_ = bias.front();
  return {};
}

void MarkovHead::reserve(LayerOps& ops, int64_t tokens) {
  latent_.reserve(tokens, sizes_.rank);
  biases_.reserve(tokens, sizes_.draft_vocab);
  logits_.reserve(tokens, sizes_.vocab);
  ops.reserve(bias_, tokens);
}

std::span<const float> MarkovHead::logits(LayerOps& ops, std::span<const float> place,
                                          std::span<const TokenId> before) {
  const int64_t count = std::ssize(before);
  const int64_t vocab = sizes_.vocab;
  reserve(ops, count);
  for (int64_t i = 0; i < count; ++i)
    unpack_row(before_, before[static_cast<size_t>(i)], latent_.data() + i * sizes_.rank);
  ops.project(bias_, latent_.data(), biases_.data(), count);
  for (int64_t i = 0; i < count; ++i) {
    float* out = logits_.data() + i * vocab;
    const float* bias = biases_.data() + i * sizes_.draft_vocab;
    std::copy_n(place.data(), vocab, out);
    for (int64_t row = 0; row < sizes_.draft_vocab; ++row)
      out[ids_.empty() ? row : int64_t{ids_[static_cast<size_t>(row)]}] += bias[row];
  }
  return {logits_.data(), static_cast<size_t>(count * vocab)};
}

float MarkovHead::confidence(const float* state, TokenId before) {
  const auto own = confidence_.begin() + sizes_.hidden;
  float sum = std::inner_product(confidence_.begin(), own, state, confidence_bias_);
  if (sizes_.reads_rank) {
    latent_.reserve(1, sizes_.rank);
    unpack_row(before_, before, latent_.data());
    sum = std::inner_product(own, confidence_.end(), latent_.data(), sum);
  }
  return 1.0f / (1.0f + std::exp(-sum));
}

}  // namespace outrider
