// SPDX-License-Identifier: Apache-2.0
#include "drafters/model_chains.h"

#include <utility>
#include <vector>

#include "models/backend/device/device_loop.h"

namespace outrider {

ModelChains::ModelChains(DeviceBackend& backend, Model& model, KvCache& cache, int64_t vocab_size,
                         const DeviceDraft::Shape& shape)
    : backend_(backend),
      model_(model),
      cache_(cache),
      rows_(backend.launcher().device(), {.rows = 2 * shape.max_sequences,
                                          .sequences = shape.max_sequences,
                                          .max_length = shape.max_length,
                                          .page_size = cache.shape().page_size}),
      chooser_(backend.launcher().device(),
               {.rows = shape.max_sequences, .vocab_size = vocab_size, .row_size = model.config().vocab_size},
               {}),
      going_(backend.launcher().device(), 1) {}

Result<std::unique_ptr<ModelChains>> ModelChains::make(Model& model, KvCache& cache, int64_t vocab_size,
                                                       const DeviceDraft::Shape& shape) {
  auto* backend = dynamic_cast<DeviceBackend*>(&model.backend());
  if (backend == nullptr) return usage_error("the draft model is not on a device");
  if (const std::string part = part_without_loops(model.config()); !part.empty())
    return usage_error("the draft model has " + part);
  return std::unique_ptr<ModelChains>(new ModelChains(*backend, model, cache, vocab_size, shape));
}

void ModelChains::start(std::span<const Row> rows) {
  std::vector<const KvSequence*> sequences;
  std::vector<ChoiceRow> choices;
  for (const Row& row : rows) {
    sequences.push_back(row.kv);
    choices.push_back(row.kv == nullptr ? ChoiceRow() : row.choice);
  }
  rows_.set_pages(sequences);
  chooser_.set_rows(choices);
}

// A pass over the first rows, the choice of a token after each sequence's, and the rows of the next pass.
void ModelChains::record_level(const simt::DraftChainsArgs& args, int64_t rows) {
  model_.forward(batch_of_rows(rows, args.of.sequences), cache_);
  chooser_.choose(backend_.launcher(), model_.logit_rows(), rows_.places(), args.of.sequences);
  backend_.launcher().launch(KernelName::kExtendChains, args, {});
}

void ModelChains::record(const simt::Chains& chains, DeviceList& list) {
  const simt::DraftChainsArgs args{
      .of = chains,
      .rows = rows_.view(),
      .chosen = rows_at<const int>(chooser_.chosen().address(), chains.sequences),
      .going = going_.rows()};
  backend_.record(&rows_.recorded(), &list);
  backend_.launcher().launch(KernelName::kStartChains, args, {});
  record_level(args, 2 * int64_t{chains.sequences});
  if (chains.levels > 1) {
    DeviceList level;
    backend_.record(&rows_.recorded(), &level);
    record_level(args, chains.sequences);
    list.repeat(going_.address(), chains.levels - 1, std::move(level));
  }
  backend_.record(nullptr, nullptr);
}

}  // namespace outrider
