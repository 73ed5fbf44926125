// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "draft_heads/head_file.h"
#include "models/backend/layer_backend.h"
#include "models/model.h"
#include "speculation/tree/tree_choices.h"

namespace outrider {

// Sizes of a Medusa checkpoint, by its tensors.
struct MedusaShape {
  std::string prefix;      // begins the tensors' names: "medusa_head." where they came with the target's
  int64_t head_count = 0;  // head k predicts the token k + 2 places after the one with the state it sees
  int64_t block_count = 0;
  int64_t hidden_size = 0;
  int64_t vocab_size = 0;
};

// Errors: config.json says something else than the tensors.
Result<MedusaShape> medusa_shape(const HeadFile& head);

// The tree that suits the heads: medusa_choices of config.json; else the `nodes` best ones by its
// medusa_accuracies, if it has them; else the published ones that the heads can draft.
Result<TreeChoices> medusa_tree(const HeadFile& head, size_t nodes);

// Medusa's heads (2401.10774, 2.1): each is a few blocks x + SiLU(W x + b) and a matrix to the vocabulary,
// over the target's state after its final norm.
class MedusaHeads {
 public:
  // Errors: tensors that are missing, of another shape, or not a Medusa drafter's; another target's.
  // `backend`, which computes the target, must outlive the heads.
  static Result<std::unique_ptr<MedusaHeads>> load(const HeadFile& head, const ModelConfig& target,
                                                   LayerBackend& backend, const ModelOptions& options);

  const MedusaShape& shape() const { return shape_; }
  int64_t weight_bytes() const;
  // Makes room for so many rows; without it the first ones allocate.
  void reserve(int64_t rows);

  // The blocks of all heads over states [rows, hidden_size].
  void start(FloatAddress states, int64_t rows);
  // One head's logits of these rows, [rows, vocab_size], valid until the next call. Call it once per head.
  std::span<const float> logits(int64_t head);
  // The logits of the last call in the memory of the backend.
  FloatAddress logit_rows() const { return logits_.data(); }

 private:
  MedusaHeads(MedusaShape shape, LayerBackend& backend) : shape_(std::move(shape)), backend_(backend) {}
  Status load_weights(const HeadFile& head, const ModelOptions& options);

  MedusaShape shape_;
  LayerBackend& backend_;
  WeightMemory memory_;
  Projection first_;                             // the first block of every head, side by side
  std::vector<std::vector<Projection>> blocks_;  // by head: the heads after it
  std::vector<Projection> outputs_;              // by head
  int64_t rows_ = 0;
  BackendRows products_{backend_};  // [rows, head_count * hidden_size]
  BackendRows states_{backend_};    // [head_count, rows, hidden_size]
  BackendRows logits_{backend_};    // [rows, vocab_size]
};

}  // namespace outrider
