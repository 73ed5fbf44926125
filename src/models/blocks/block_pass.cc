// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/block_pass.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "models/blocks/low_rank/low_rank_step.h"

namespace outrider {

void BlockPass::reserve(int64_t rows) {
  positions_.reserve(rows);
  for (auto* list : {&rows_, &wanted_}) list->reserve(static_cast<size_t>(rows));
  attention_rows_.reserve(static_cast<size_t>(rows));
  narrowed_.reserve(2);
}

void BlockPass::reserve_scratch(int64_t rows, std::span<const int64_t> sizes) {
  while (scratch_.size() < sizes.size()) scratch_.emplace_back(backend_);
  for (size_t i = 0; i < sizes.size(); ++i) scratch_[i].reserve(rows, sizes[i]);
}

void BlockPass::begin(const ForwardBatch& batch, KvCache& cache, bool has_states) {
  batch_ = &batch;
  cache_ = &cache;
  has_states_ = has_states && !batch.states.empty();
  positions_.place(batch);
  narrowed_.clear();
  chosen_parts_ = 0;
  wanted_.clear();
  std::set_union(batch.logits_rows.begin(), batch.logits_rows.end(), batch.hidden_state_rows.begin(),
                 batch.hidden_state_rows.end(), std::back_inserter(wanted_));
}

void BlockPass::place(const ForwardBatch& batch) {
  positions_.reserve(batch.rows());
  positions_.place(batch);
  rotations_.clear();
  for (int rope = 0; rope < positions_.rope_count(); ++rope) rotations_.push_back(positions_.rotations(rope));
}

void BlockPass::plan_states(const ForwardBatch& batch, KvCache& cache) {
  rows_.resize(static_cast<size_t>(batch.rows()));
  std::iota(rows_.begin(), rows_.end(), 0);
  states_.build(batch, rows_, cache.states());
}

void BlockPass::list_rows(bool with_resumed, int32_t first_entry) {
  rows_.clear();
  attention_rows_.clear();
  auto resumed = batch_->resumed_rows.begin();
  for (int32_t row = 0; row < batch_->rows(); ++row) {
    if (!with_resumed && resumed != batch_->resumed_rows.end() && *resumed == row) {
      ++resumed;
      continue;
    }
    rows_.push_back(row);
    attention_rows_.push_back(attention_row(*batch_, row));
  }
  if (first_entry > 0) hiding_.hide_before(first_entry, attention_rows_);
  list_adapted();
  if (has_states_) states_.build(*batch_, rows_, cache_->states());
}

// Gathers neighbouring rows with equal adapters, which are rows of one sequence or of several.
void BlockPass::list_adapted() {
  adapted_.clear();
  if (batch_->adapters.empty()) return;
  const std::span<const ScaledAdapter> all = batch_->adapters;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const auto sequence = static_cast<size_t>(batch_->sequences[static_cast<size_t>(rows_[i])]);
    const auto begin = static_cast<size_t>(batch_->adapter_begin[sequence]);
    const auto adapters =
        all.subspan(begin, static_cast<size_t>(batch_->adapter_begin[sequence + 1]) - begin);
    if (adapters.empty()) continue;
    const auto row = static_cast<int64_t>(i);
    const bool goes_on = !adapted_.empty() && adapted_.back().begin + adapted_.back().count == row &&
                         std::ranges::equal(adapted_.back().adapters, adapters);
    if (!goes_on) adapted_.push_back({row, 0, adapters});
    ++adapted_.back().count;
  }
}

void BlockPass::project(const Projection& projection, FloatAddress x, FloatAddress y) {
  backend_.project(projection, x, y, rows());
  if (adapted_.empty()) return;
  LowRankStep step;
  step.adapters = adapters_;
  step.projection = &projection;
  step.rows = adapted_;
  step.x = x;
  step.y = y;
  step.row_count = rows();
  backend_.run(step);
}

void BlockPass::project_and_activate(const Projection& projection, FloatAddress x,
                                     const LayerBackend::Activate& args) {
  if (adapted_.empty()) return backend_.project_and_activate(projection, x, args);
  project(projection, x, args.x);
  backend_.activate(args);
}

void BlockPass::move_wanted(const RowBlock& rows) {
  backend_.copy({rows.data, rows.size, wanted_, rows.data, rows.size, rows.size});
}

void BlockPass::keep_wanted(std::initializer_list<RowBlock> moved) {
  if (narrowed_.empty()) return;
  for (const RowBlock& rows : moved) move_wanted(rows);
  for (const RowBlock& rows : narrowed_) move_wanted(rows);
  narrowed_.clear();
  size_t kept = 0;
  for (const int32_t row : wanted_) {  // ascending, so moving rows down in place is safe
    attention_rows_[kept] = attention_rows_[static_cast<size_t>(row)];
    rows_[kept++] = rows_[static_cast<size_t>(row)];
  }
  attention_rows_.resize(kept);
  rows_.resize(kept);
  list_adapted();
}

}  // namespace outrider
