// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "models/model.h"

namespace outrider {

// The rows [rows.begin, rows.end) of a batch as a batch of their own.
ForwardBatch slice_of(const ForwardBatch& batch, Range rows);

// A rank's part of the passes of a model. Where there are pipeline stages, a batch of many rows is computed
// in slices, so that one stage computes the next slice while another computes the one before. A row sees only
// earlier rows, so every slice may follow the slices before it.
class PartPass {
 public:
  // model: the part of this rank. micro_rows: the fewest rows of a slice; fewer would take as long, because
  // every slice reads all weights.
  PartPass(Model& model, const ModelPart& part, int64_t micro_rows)
      : model_(model), part_(part), micro_rows_(micro_rows) {}

  const ModelPart& part() const { return part_; }
  // The taps of the whole model. Every rank keeps its layers' taps.
  void tap(const FeatureTaps& taps);

  // Runs this rank's part of a pass. subset: its layers, or null for all.
  void run(const ForwardBatch& batch, KvCache& cache, const LayerSubset* subset);

  // The results of the last pass, only at rank 0.
  std::span<const float> logits() const { return logits_; }
  std::span<const float> states() const { return states_; }         // of batch.hidden_state_rows
  std::span<const float> subset_states() const { return hidden_; }  // of a subset
  std::span<const float> features() const { return features_; }

 private:
  // The numbers that a stage has for rank 0 after one slice.
  struct Output {
    std::span<const float> logits, states, hidden, features;
  };
  int64_t slice_count(const ForwardBatch& batch) const;
  Output run_slice(const ForwardBatch& batch, KvCache& cache, const LayerSubset* subset);
  void run_slices(const ForwardBatch& batch, KvCache& cache, const LayerSubset* subset);
  void send(const Output& output) const;
  void receive(const ForwardBatch& slice, bool is_subset);
  void append(std::vector<float>& list, int64_t numbers, int from);
  bool keeps_features(const ForwardBatch& batch, bool is_subset) const;
  void place_features(std::span<const float> of_stage, int stage, int64_t rows);
  // Numbers of a row's features that the stages before this one keep.
  int64_t features_before(int stage) const;
  int64_t layer_count() const { return model_.config().layer_count; }

  Model& model_;
  ModelPart part_;
  int64_t micro_rows_;
  std::vector<FeatureTaps> taps_;  // [stages]

  // Results that come from other stages, [rows, ...]; the spans point into them or into the model.
  std::vector<float> logit_rows_, state_rows_, hidden_rows_, feature_rows_, received_;
  std::span<const float> logits_, states_, hidden_, features_;
  int64_t placed_ = 0;  // rows of features before the present slice
};

}  // namespace outrider
