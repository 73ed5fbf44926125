// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/markov_head.h"

#include <fmt/format.h>

#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/portable_math.h"

namespace outrider {
namespace {

constexpr const char* kBefore = "markov_head.markov_w1";
constexpr const char* kBias = "markov_head.markov_w2";
constexpr const char* kConfidence = "confidence_head.proj.weight";
constexpr const char* kConfidenceBias = "confidence_head.proj.bias";

}  // namespace

Result<MarkovHead::Sizes> MarkovHead::read_sizes(const HeadFile& head, int64_t hidden, int64_t vocab,
                                                 int64_t draft_vocab) {
  OUTRIDER_TRY(const MarkovKind kind, read_markov_kind(head));
  OUTRIDER_TRY(const auto rank, head.config.root().integer("markov_rank"));
  if (!rank || *rank < 1)
    return head.fail(fmt::format("config.json: expected a markov_rank of at least 1, found {}",
                                 rank ? std::to_string(*rank) : "none"));
  Sizes sizes{.rank = *rank, .hidden = hidden, .vocab = vocab, .draft_vocab = draft_vocab, .kind = kind};
  const auto confidence = head.tensors.find(kConfidence);
  sizes.has_confidence = confidence != head.tensors.end();
  sizes.reads_rank = sizes.has_confidence && confidence->second.shape != Shape{1, hidden};
  return sizes;
}

void MarkovHead::append_tensors(const HeadFile& head, const Sizes& sizes, std::vector<HeadTensor>& tensors) {
  tensors.push_back({.name = std::string(kBefore) + ".weight", .shape = {sizes.vocab, sizes.rank}});
  tensors.push_back({.name = std::string(kBias) + ".weight", .shape = {sizes.draft_vocab, sizes.rank}});
  if (sizes.kind != MarkovKind::kVanilla) MarkovMixer::append_tensors(mixer_sizes(sizes), tensors);
  if (!sizes.has_confidence) return;
  const int64_t inputs = sizes.hidden + (sizes.reads_rank ? sizes.rank : 0);
  tensors.push_back({.name = kConfidence, .shape = {1, inputs}});
  if (head.tensors.contains(kConfidenceBias)) tensors.push_back({.name = kConfidenceBias, .shape = {1}});
}

Status MarkovHead::plan(const HeadFile& head, WeightLoader& loader) {
  OUTRIDER_RETURN_IF_ERROR(loader.plan_table({kBefore, sizes_.vocab}, sizes_.rank, before_));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{kBias, sizes_.draft_vocab}}, sizes_.rank, /*bias=*/false, bias_));
  if (sizes_.kind != MarkovKind::kVanilla) OUTRIDER_RETURN_IF_ERROR(mixer_.plan(loader));
  if (!sizes_.has_confidence) return {};
  OUTRIDER_TRY(confidence_, read_numbers(head, kConfidence));
  if (!head.tensors.contains(kConfidenceBias)) return {};
  OUTRIDER_TRY(const std::vector<float> bias, read_numbers(head, kConfidenceBias));
  confidence_bias_ = bias.front();
  return {};
}

void MarkovHead::reserve(int64_t tokens) {
  latent_.reserve(tokens, sizes_.rank);
  biases_.reserve(tokens, sizes_.draft_vocab);
  logits_.reserve(tokens, sizes_.vocab);
  backend_.reserve_product(bias_, tokens);
  mixer_.reserve(tokens);
}

std::span<const float> MarkovHead::logits(FloatAddress place, FloatAddress state, const Before& before) {
  const int64_t count = std::ssize(before.tokens);
  reserve(count);
  backend_.look_up(before_, before.tokens, latent_.data());
  if (sizes_.kind != MarkovKind::kVanilla) {
    mixer_.carry(before.from, count);
    mixer_.mix({state}, latent_.data(), count);
  }
  return backend_.read(add_biases(place, 1, count), count * sizes_.vocab);
}

FloatAddress MarkovHead::recorded_logits(const Places& places, int64_t rows) {
  reserve(rows);
  backend_.look_up(before_, std::vector<TokenId>(static_cast<size_t>(rows)), latent_.data());
  if (places.is_first) mixer_.clear_cells(rows);
  if (sizes_.kind != MarkovKind::kVanilla) mixer_.mix({places.states, places.count}, latent_.data(), rows);
  return add_biases(places.logits, places.count, rows);
}

FloatAddress MarkovHead::add_biases(FloatAddress places, int64_t count, int64_t rows) {
  backend_.project(bias_, latent_.data(), biases_.data(), rows);
  backend_.add_columns({.x = biases_.data(),
                        .columns = ids_,
                        .count = sizes_.draft_vocab,
                        .y = logits_.data(),
                        .width = sizes_.vocab,
                        .rows = rows,
                        .base_rows = count},
                       places);
  return logits_.data();
}

float MarkovHead::confidence(FloatAddress state, TokenId before) {
  const auto own = confidence_.begin() + sizes_.hidden;
  const std::span<const float> numbers = backend_.read(state, sizes_.hidden);
  float sum = std::inner_product(confidence_.begin(), own, numbers.begin(), confidence_bias_);
  if (sizes_.reads_rank) {
    latent_.reserve(1, sizes_.rank);
    backend_.look_up(before_, {&before, 1}, latent_.data());
    sum = std::inner_product(own, confidence_.end(), backend_.read(latent_.data(), sizes_.rank).begin(), sum);
  }
  return portable_sigmoid(sum);
}

}  // namespace outrider
