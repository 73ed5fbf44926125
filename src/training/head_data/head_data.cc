// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/head_data.h"

#include <algorithm>
#include <numeric>

#include "base/counter_rng.h"

namespace outrider::training {
namespace {

constexpr int64_t kShortest = 8;        // tokens; shorter windows are dropped
constexpr int64_t kBatchesSorted = 16;  // windows of this many batches are sorted by length together

enum Choice : uint64_t { kPick = 1, kShuffle = 2, kOrder = 3 };

void shuffle(std::vector<size_t>& items, uint64_t seed, int64_t epoch, Choice choice) {
  for (size_t i = items.size(); i > 1; --i) {
    const uint64_t bits = random_bits({.seed = seed, .sample_index = choice, .position = epoch, .index = i});
    std::swap(items[i - 1], items[bits % i]);
  }
}

}  // namespace

Result<HeadData> HeadData::create(std::vector<DocumentSource> sources, const HeadDataOptions& options) {
  const bool fits = options.context > 0 && options.context % kLengthUnit == 0;
  if (!fits || options.batch_tokens < options.context) {
    return usage_error("--context, a multiple of " + std::to_string(kLengthUnit) +
                       ", and --batch-tokens of at least that are expected, found " +
                       std::to_string(options.context) + " and " + std::to_string(options.batch_tokens));
  }
  HeadData data(std::move(sources), options);
  for (size_t source = 0; source < data.sources_.size(); ++source) data.cut(source);
  if (data.training_.empty() || data.held_out_.empty()) {
    return input_error("--data: text for training and at least one held-out document are expected, found " +
                       std::to_string(data.training_.size()) + " windows and " +
                       std::to_string(data.held_out_.size()) + " held-out ones; give more documents");
  }
  uint64_t hash =
      mix64(static_cast<uint64_t>(options.context) ^ mix64(static_cast<uint64_t>(options.batch_tokens)));
  for (const Place& place : data.training_) {
    const Window window = data.at(place);
    for (size_t i = 0; i < window.tokens.size(); ++i) {
      hash = mix64(hash ^ static_cast<uint64_t>(window.tokens[i]) << 1 ^ window.counted[i]);
      data.counted_tokens_ += window.counted[i];
    }
  }
  data.fingerprint_ = hash;
  return data;
}

// Cuts one source into windows, holds some out and keeps at most windows_per_source of the others.
void HeadData::cut(size_t source) {
  std::vector<Place> places;
  const std::vector<Document>& documents = sources_[source].documents;
  for (size_t i = 0; i < documents.size(); ++i) {
    const auto length = static_cast<int64_t>(documents[i].tokens.size());
    const bool is_held_out =
        mix64(options_.seed ^ mix64(source << 32 | i)) % static_cast<uint64_t>(options_.held_out_one_in) == 0;
    for (int64_t first = 0; first < length; first += options_.context) {
      const Place place{source, i, first, std::min(options_.context, length - first), 0};
      const Window window = at(place);
      const bool counts =
          std::any_of(window.counted.begin(), window.counted.end(), [](uint8_t c) { return c != 0; });
      if (place.count >= kShortest && counts) (is_held_out ? held_out_ : places).push_back(place);
    }
  }
  std::vector<size_t> order(places.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (options_.windows_per_source > 0) {
    shuffle(order, options_.seed, static_cast<int64_t>(source), kPick);
    order.resize(std::min(order.size(), static_cast<size_t>(options_.windows_per_source)));
    std::sort(order.begin(), order.end());
  }
  for (const size_t index : order) {
    places[index].id = static_cast<int64_t>(training_.size());
    training_.push_back(places[index]);
  }
}

Window HeadData::at(const Place& place) const {
  const Document& document = sources_[place.source].documents[place.document];
  const auto first = static_cast<size_t>(place.first), count = static_cast<size_t>(place.count);
  return {std::span(document.tokens).subspan(first, count), std::span(document.counted).subspan(first, count),
          place.id};
}

std::vector<HeadData::Batch> HeadData::plan(int64_t epoch) const {
  std::vector<size_t> order(training_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  shuffle(order, options_.seed, epoch, kShuffle);
  const auto together = static_cast<size_t>(kBatchesSorted * options_.batch_tokens / options_.context);
  std::vector<Batch> batches;
  for (size_t first = 0; first < order.size(); first += together) {
    const auto begin = order.begin() + static_cast<int64_t>(first);
    const auto end = order.begin() + static_cast<int64_t>(std::min(first + together, order.size()));
    std::stable_sort(begin, end, [&](size_t a, size_t b) { return training_[a].count < training_[b].count; });
    Batch batch;
    for (auto index = begin; index != end; ++index) {
      const int64_t longest =
          padded_length(training_[*index].count);  // the longest so far, as the lengths rise
      if ((static_cast<int64_t>(batch.size()) + 1) * longest > options_.batch_tokens)
        batches.push_back(std::exchange(batch, {}));
      batch.push_back(*index);
    }
    if (!batch.empty()) batches.push_back(std::move(batch));
  }
  std::vector<size_t> places(batches.size());
  std::iota(places.begin(), places.end(), size_t{0});
  shuffle(places, options_.seed, epoch, kOrder);
  std::vector<Batch> shuffled;
  for (const size_t place : places) shuffled.push_back(std::move(batches[place]));
  return shuffled;
}

std::vector<Window> HeadData::batch(int64_t step) const {
  if (epoch_ < 0 || step < epoch_step_) {
    plan_ = plan(0);
    epoch_ = epoch_step_ = 0;
  }
  while (step >= epoch_step_ + static_cast<int64_t>(plan_.size())) {
    epoch_step_ += static_cast<int64_t>(plan_.size());
    plan_ = plan(++epoch_);
  }
  std::vector<Window> windows;
  for (const size_t index : plan_[static_cast<size_t>(step - epoch_step_)])
    windows.push_back(at(training_[index]));
  return windows;
}

std::vector<std::vector<Window>> HeadData::held_out(int64_t limit) const {
  std::vector<std::vector<Window>> batches;
  const auto count = std::min(limit, static_cast<int64_t>(held_out_.size()));
  const int64_t per_batch = std::max<int64_t>(1, options_.batch_tokens / options_.context);
  for (int64_t i = 0; i < count; ++i) {  // spread evenly over all sources
    if (i % per_batch == 0) batches.emplace_back();
    const auto place = static_cast<size_t>(i * static_cast<int64_t>(held_out_.size()) / count);
    batches.back().push_back(at(held_out_[place]));
    batches.back().back().id = window_count() + i;
  }
  return batches;
}

std::vector<int64_t> HeadData::token_counts(int64_t vocab_size) const {
  std::vector<int64_t> counts(static_cast<size_t>(vocab_size), 0);
  for (const Place& place : training_) {
    const Window window = at(place);
    for (size_t i = 0; i < window.tokens.size(); ++i)
      counts[static_cast<size_t>(window.tokens[i])] += window.counted[i];
  }
  return counts;
}

}  // namespace outrider::training
