// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "draft_heads/vocabulary/head_vocabulary.h"
#include "models/model.h"

namespace outrider {

// Passes of a draft model that make logits of only some tokens (FR-Spec, arXiv 2502.14856).
class PartialOutput {
 public:
  // `file` is the model's, and gets its rows for these tokens. Errors: as of add_output_rows(), out of
  // memory.
  static Result<std::unique_ptr<PartialOutput>> load(ModelFile& file, Model* model, std::vector<TokenId> ids,
                                                     const ModelOptions& options);

  // Model::forward(); the logits of other tokens are -infinity.
  std::span<const float> forward(ForwardBatch& batch, KvCache& cache);
  void reserve(int64_t rows) { vocabulary_.reserve(rows); }
  int64_t weight_bytes() const { return weight_bytes_; }

 private:
  explicit PartialOutput(Model* model) : model_(model), vocabulary_(model) {}

  Model* model_;
  HeadVocabulary vocabulary_;
  WeightMemory memory_;
  int64_t weight_bytes_ = 0;
};

}  // namespace outrider
