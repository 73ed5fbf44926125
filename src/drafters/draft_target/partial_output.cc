// SPDX-License-Identifier: Apache-2.0
#include "drafters/draft_target/partial_output.h"

#include <utility>

#include "draft_heads/vocabulary/output_rows.h"

namespace outrider {

Result<std::unique_ptr<PartialOutput>> PartialOutput::load(ModelFile& file, Model* model,
                                                           std::vector<TokenId> ids,
                                                           const ModelOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(add_output_rows(file, file, ids));
  auto output = std::unique_ptr<PartialOutput>(new PartialOutput(model));
  WeightLoader loader(file, options);
  OUTRIDER_RETURN_IF_ERROR(output->vocabulary_.plan_output_rows(loader, file, std::move(ids)));
  OUTRIDER_TRY(output->memory_, loader.pack_all());
  output->weight_bytes_ = loader.packed_bytes();
  return output;
}

std::span<const float> PartialOutput::forward(ForwardBatch& batch, KvCache& cache) {
  // The model gives the states that its output head would read.
  std::swap(batch.logits_rows, batch.hidden_state_rows);
  model_->forward(batch, cache);
  std::swap(batch.logits_rows, batch.hidden_state_rows);
  return vocabulary_.read_logits(model_->hidden_rows(), std::ssize(batch.logits_rows));
}

}  // namespace outrider
