// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <span>
#include <vector>

#include "kv/kv_cache.h"
#include "models/backend/entry_hiding.h"
#include "models/backend/layer_backend.h"
#include "models/blocks/low_rank/low_rank_ops.h"
#include "models/blocks/row_positions.h"
#include "models/blocks/state_plan.h"
#include "models/forward_batch.h"

namespace outrider {

// A pass over a batch as the blocks of its layers see it: which rows are being computed, what they see, and
// scratch that all blocks share.
class BlockPass {
 public:
  // Rows in the memory of the backend.
  struct RowBlock {
    FloatAddress data;
    int64_t size = 0;  // numbers of a row
  };

  BlockPass(const ModelConfig& config, int64_t context, LayerBackend& backend)
      : backend_(backend), positions_(config, context) {}

  // For blocks. Scratch number `index` has room for the sizes that Block::scratch() states.
  LayerBackend& backend() const { return backend_; }
  KvCache& cache() const { return *cache_; }
  const StatePlan& states() const { return states_; }
  // False: the pass is being recorded, and changes no state.
  bool plans_states() const { return has_states_; }
  int64_t rows() const { return static_cast<int64_t>(attention_rows_.size()); }
  std::span<const AttentionRow> attention_rows() const { return attention_rows_; }
  FloatAddress scratch(size_t index) const { return scratch_[index].data(); }
  // y[rows, n] = the projection of x[rows, k], with the updates of the rows' adapters (Block::adaptable).
  void project(const Projection& projection, FloatAddress x, FloatAddress y);
  // The same into args.x, and args.y = its activation.
  void project_and_activate(const Projection& projection, FloatAddress x, const LayerBackend::Activate& args);
  LayerBackend::RowPlaces places(int rope) {
    return {rows_, batch_->slots, positions_.rotations(rope), positions_.query_factors(rope)};
  }
  // Once the last layer has stored what later rows read, nothing depends any more on rows that are not
  // wanted. Narrows the rows being computed to the wanted ones, in their order, and moves these rows along.
  void keep_wanted(std::initializer_list<RowBlock> moved);
  // The rows have chosen this many parts of the block (Block::part_matrices).
  void set_chosen_parts(int64_t count) { chosen_parts_ = count; }

  // For the network. Rows may name adapters of the set, which must outlive the passes.
  void use_adapters(const AdapterSet& adapters) { adapters_ = &adapters; }
  // Makes room for batches of that size; blocks that follow state their scratch.
  void reserve(int64_t rows);
  void reserve_scratch(int64_t rows, std::span<const int64_t> sizes);
  // `has_states`: some layers keep states. They change none for a batch without states.
  void begin(const ForwardBatch& batch, KvCache& cache, bool has_states);
  // The numbers that the positions of all rows decide: rotations by RoPE, and factors of queries.
  void place(const ForwardBatch& batch);
  // How all rows follow one another in layers that keep states.
  void plan_states(const ForwardBatch& batch, KvCache& cache);
  std::span<const RowRotations> rotations() const { return rotations_; }
  QueryFactors query_factors() const { return positions_.query_factors(LayerTraits::kNoRope); }
  // Makes the rows being computed all rows of the batch, or the rows that do not resume. They see no entry of
  // their sequences before `first_entry`, except themselves.
  void list_rows(bool with_resumed, int32_t first_entry = 0);
  EntryHiding& hiding() { return hiding_; }
  // The next block narrows rows, and also moves `moved` along.
  void narrow_next(std::initializer_list<RowBlock> moved) { narrowed_.assign(moved); }
  int64_t take_chosen_parts() { return std::exchange(chosen_parts_, 0); }
  std::span<const int32_t> batch_rows() const { return rows_; }  // being computed
  std::span<const int32_t> wanted() const { return wanted_; }

 private:
  void move_wanted(const RowBlock& rows);
  void list_adapted();

  LayerBackend& backend_;
  const ForwardBatch* batch_ = nullptr;
  KvCache* cache_ = nullptr;
  bool has_states_ = false;
  std::vector<int32_t> wanted_;  // rows of the batch with wanted logits or states, ascending
  std::vector<int32_t> rows_;    // rows of the batch being computed
  std::vector<AttentionRow> attention_rows_;
  EntryHiding hiding_;
  const AdapterSet* adapters_ = nullptr;
  std::vector<AdaptedRows> adapted_;  // among the rows being computed
  std::vector<RowBlock> narrowed_;    // empty: the running block does not narrow
  RowPositions positions_;
  std::vector<RowRotations> rotations_;  // of the last place()
  StatePlan states_;
  std::deque<BackendRows> scratch_;
  int64_t chosen_parts_ = 0;
};

}  // namespace outrider
