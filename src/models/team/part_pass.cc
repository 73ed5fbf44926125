// SPDX-License-Identifier: Apache-2.0
#include "models/team/part_pass.h"

#include <algorithm>

namespace outrider {
namespace {

// The rows of an ascending list that lie in the range, counted from its beginning.
std::vector<int32_t> rows_within(const std::vector<int32_t>& rows, Range range) {
  std::vector<int32_t> within;
  for (const int32_t row : rows) {
    if (row >= range.begin && row < range.end) within.push_back(row - static_cast<int32_t>(range.begin));
  }
  return within;
}

template <typename T>
std::vector<T> part_of_list(const std::vector<T>& list, Range range) {
  return {list.begin() + range.begin, list.begin() + range.end};
}

}  // namespace

ForwardBatch slice_of(const ForwardBatch& batch, Range rows) {
  ForwardBatch slice;
  slice.tokens = part_of_list(batch.tokens, rows);
  slice.positions = part_of_list(batch.positions, rows);
  slice.slots = part_of_list(batch.slots, rows);
  slice.sequences = part_of_list(batch.sequences, rows);
  slice.prefix_len = part_of_list(batch.prefix_len, rows);
  slice.tail_begin = part_of_list(batch.tail_begin, {rows.begin, rows.end + 1});
  slice.tails = part_of_list(batch.tails, {slice.tail_begin.front(), slice.tail_begin.back()});
  for (const int32_t first = slice.tail_begin.front(); int32_t & begin : slice.tail_begin) begin -= first;
  slice.page_begin = batch.page_begin;
  slice.pages = batch.pages;
  slice.states = batch.states;
  slice.logits_rows = rows_within(batch.logits_rows, rows);
  slice.hidden_state_rows = rows_within(batch.hidden_state_rows, rows);
  slice.resumed_rows = rows_within(batch.resumed_rows, rows);
  slice.resume_layer = batch.resume_layer;
  if (slice.resumed_rows.empty()) return slice;
  const auto size = std::ssize(batch.resumed_states) / std::ssize(batch.resumed_rows);
  const auto before = std::ranges::lower_bound(batch.resumed_rows, rows.begin) - batch.resumed_rows.begin();
  slice.resumed_states =
      part_of_list(batch.resumed_states, {before * size, (before + std::ssize(slice.resumed_rows)) * size});
  return slice;
}

void PartPass::tap(const FeatureTaps& taps) {
  taps_.assign(static_cast<size_t>(part_.stage_count), {});
  for (int stage = 0; stage < part_.stage_count; ++stage) {
    const Range layers = share_of({stage, part_.stage_count}, layer_count());
    const bool is_last = stage + 1 == part_.stage_count;
    FeatureTaps& own = taps_[static_cast<size_t>(stage)];
    for (const int64_t layer : taps.layers) {
      if (layer >= layers.begin && (layer < layers.end || is_last)) own.layers.push_back(layer);
    }
    own.final_norm = is_last && taps.final_norm;
  }
  model_.tap(taps_[static_cast<size_t>(part_.stage)]);
}

int64_t PartPass::slice_count(const ForwardBatch& batch) const {
  return std::clamp<int64_t>(batch.rows() / micro_rows_, 1, part_.stage_count);
}

void PartPass::run(const ForwardBatch& batch, KvCache& cache, const LayerSubset* subset) {
  if (part_.stage_count > 1) return run_slices(batch, cache, subset);
  const Output output = run_slice(batch, cache, subset);
  logits_ = output.logits;
  states_ = output.states;
  hidden_ = output.hidden;
  features_ = output.features;
}

PartPass::Output PartPass::run_slice(const ForwardBatch& batch, KvCache& cache, const LayerSubset* subset) {
  if (subset != nullptr) {
    const SubsetOutput output = model_.forward_subset(batch, cache, *subset);
    return {.logits = output.logits, .states = {}, .hidden = output.states, .features = {}};
  }
  Output output{.logits = model_.forward(batch, cache), .states = {}, .hidden = {}, .features = {}};
  if (!batch.hidden_state_rows.empty()) output.states = model_.hidden_states();
  if (keeps_features(batch, false)) output.features = model_.features();
  return output;
}

void PartPass::run_slices(const ForwardBatch& batch, KvCache& cache, const LayerSubset* subset) {
  const auto count = static_cast<int>(slice_count(batch));
  const bool is_root = part_.ranks->rank() == 0;
  for (std::vector<float>* rows : {&logit_rows_, &state_rows_, &hidden_rows_}) rows->clear();
  feature_rows_.resize(static_cast<size_t>(batch.rows() * features_before(part_.stage_count)));
  std::vector<ForwardBatch> slices;
  placed_ = 0;
  for (int i = 0; i < count; ++i) {
    slices.push_back(slice_of(batch, share_of({i, count}, batch.rows())));
    const Output output = run_slice(slices.back(), cache, subset);
    if (!is_root && part_.shard.index == 0) send(output);
    if (is_root && !output.features.empty()) place_features(output.features, 0, slices.back().rows());
    placed_ += slices.back().rows();
  }
  if (!is_root) return;
  placed_ = 0;
  for (const ForwardBatch& slice : slices) {
    receive(slice, subset != nullptr);
    placed_ += slice.rows();
  }
  logits_ = logit_rows_;
  states_ = state_rows_;
  hidden_ = hidden_rows_;
  features_ = keeps_features(batch, subset != nullptr) ? std::span<const float>(feature_rows_)
                                                       : std::span<const float>();
}

void PartPass::send(const Output& output) const {
  for (const std::span<const float> part : {output.features, output.logits, output.states, output.hidden}) {
    if (!part.empty()) part_.ranks->send(std::as_bytes(part), 0);
  }
}

void PartPass::receive(const ForwardBatch& slice, bool is_subset) {
  const int64_t dim = model_.config().hidden_size;
  const int last = part_.rank_of(part_.stage_count - 1, 0);
  for (int stage = 1; stage < part_.stage_count && keeps_features(slice, is_subset); ++stage) {
    received_.clear();
    append(received_, slice.rows() * taps_[static_cast<size_t>(stage)].count() * dim,
           part_.rank_of(stage, 0));
    place_features(received_, stage, slice.rows());
  }
  const int64_t wanted = std::ssize(slice.logits_rows);
  append(logit_rows_, wanted * model_.config().vocab_size, last);
  append(state_rows_, std::ssize(slice.hidden_state_rows) * dim, last);
  append(hidden_rows_, is_subset ? wanted * dim : 0, last);
}

void PartPass::append(std::vector<float>& list, int64_t numbers, int from) {
  if (numbers == 0) return;
  const size_t before = list.size();
  list.resize(before + static_cast<size_t>(numbers));
  part_.ranks->receive(std::as_writable_bytes(std::span(list).subspan(before)), from);
}

// As Model::features() has it.
bool PartPass::keeps_features(const ForwardBatch& batch, bool is_subset) const {
  const auto has_taps = [](const FeatureTaps& taps) { return taps.count() > 0; };
  return !is_subset && batch.resumed_rows.empty() && std::ranges::any_of(taps_, has_taps);
}

// Features of the whole model stand side by side in the order of stages.
void PartPass::place_features(std::span<const float> of_stage, int stage, int64_t rows) {
  const int64_t begin = features_before(stage);
  const int64_t size = features_before(stage + 1) - begin;
  const int64_t width = features_before(part_.stage_count);
  for (int64_t r = 0; r < rows && size > 0; ++r)
    std::copy_n(of_stage.data() + r * size, size, feature_rows_.data() + (placed_ + r) * width + begin);
}

int64_t PartPass::features_before(int stage) const {
  int64_t taps = 0;
  for (int i = 0; i < stage && !taps_.empty(); ++i) taps += taps_[static_cast<size_t>(i)].count();
  return taps * model_.config().hidden_size;
}

}  // namespace outrider
