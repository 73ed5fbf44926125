// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "draft_heads/head_file.h"
#include "models/backend/layer_backend.h"
#include "models/model.h"

namespace outrider {

// How a drafter reads tokens and names its proposals: by its own embedding and output head, or by a model's,
// which is the target or the draft model itself.
class HeadVocabulary {
 public:
  explicit HeadVocabulary(Model* target) : target_(target), backend_(target->backend()) {}

  // Plans the tensors of the head's own; for the others the target's are used. `ids`: the target's id of each
  // row of the output head; empty: ids and rows are equal.
  Status plan_embedding(WeightLoader& loader, const std::string& name);
  Status plan_output(WeightLoader& loader, const std::string& name, std::vector<TokenId> ids);
  // Plans the rows that add_output_rows() added to `file` for these tokens; none: nothing changes.
  Status plan_output_rows(WeightLoader& loader, const ModelFile& file, std::vector<TokenId> ids);

  void embed(std::span<const TokenId> tokens, FloatAddress out) const;
  // states [rows, hidden_size] -> [rows, vocab_size of the target], valid until the next call or pass of it;
  // ids that the head does not know get -infinity.
  FloatAddress logits(FloatAddress states, int64_t rows);
  // The logits on this machine.
  std::span<const float> read_logits(FloatAddress states, int64_t rows) {
    return backend_.read(logits(states, rows), rows * target_->config().vocab_size);
  }
  bool has_own_output() const { return output_.has_value(); }
  void reserve(int64_t rows);

 private:
  // Scales and caps own_, [rows, ids], as the target does its logits.
  void finish_target_logits(int64_t rows);

  Model* target_;
  LayerBackend& backend_;
  std::optional<PackedMatrix> embedding_;
  std::optional<Projection> output_;
  std::vector<TokenId> ids_;
  bool is_targets_ = false;  // output_ has rows of the target's output head
  BackendRows own_{backend_}, logits_{backend_};
};

}  // namespace outrider
