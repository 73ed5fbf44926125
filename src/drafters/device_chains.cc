// SPDX-License-Identifier: Apache-2.0
#include "drafters/device_chains.h"

#include <algorithm>
#include <utility>

namespace outrider {

DeviceGrowth::DeviceGrowth(const SpeculativeOptions& options)
    : makes_chains_(options.tree.kind == TreeKind::kChain &&
                    options.stop.assistant_confidence_threshold == 0.0 &&
                    options.stop.entropy_threshold == 0.0),
      drafts_top_(options.tree.children == ChildrenChoice::kTop),
      temperature_factor_(options.draft_temperature) {}

bool DeviceGrowth::takes(const DraftRequest& request) const {
  const bool is_chosen = request.sampling->temperature == 0.0 || !drafts_top_;
  return is_chosen && DeviceChooser::can_choose(*request.sampling) && request.constraint == nullptr &&
         request.acceptance == AcceptanceRule::kCoupled && request.estimates == nullptr;
}

SamplingParams DeviceGrowth::sampling_of(const DraftRequest& request) const {
  SamplingParams sampling = *request.sampling;
  sampling.temperature *= temperature_factor_;
  return sampling;
}

DeviceChains::DeviceChains(DeviceBackend& backend, const Network& network, const DeviceDraft::Shape& shape)
    : backend_(backend),
      network_(network),
      blocks_(network.feature_page_size != 0 ? shape.max_levels + 1 : 2),
      rows_(backend.launcher().device(), {.rows = blocks_ * shape.max_sequences,
                                          .sequences = shape.max_sequences,
                                          .max_length = shape.max_length,
                                          .page_size = network.page_size,
                                          .lag = reads_features() ? 1 : 0}),
      features_(backend.launcher().device(), {.rows = blocks_ * shape.max_sequences,
                                              .sequences = shape.max_sequences,
                                              .max_length = shape.max_length,
                                              .page_size = std::max(1, network.feature_page_size),
                                              .lag = 1}),
      kept_(backend.launcher().device(), {.rows = blocks_ * shape.max_sequences,
                                          .sequences = shape.max_sequences,
                                          .max_length = shape.max_length,
                                          .page_size = std::max(1, network.feature_page_size)}),
      chooser_(backend.launcher().device(),
               {.rows = shape.max_sequences, .vocab_size = network.vocab_size, .row_size = network.row_size},
               {}),
      going_(backend.launcher().device(), 1) {}

void DeviceChains::start(std::span<const Row> rows) {
  std::vector<DevicePassRows::Pages> pages, features;
  std::vector<ChoiceRow> choices;
  for (const Row& row : rows) {
    pages.push_back(row.pages);
    features.push_back(row.features);
    choices.push_back(row.choice);
  }
  rows_.set_pages(pages);
  features_.set_pages(features);
  kept_.set_pages(features);
  chooser_.set_rows(choices);
}

// A pass over the first rows, the choice of a token after each sequence's, and
// the rows of the next pass.
void DeviceChains::record_pass(const simt::DraftChainsArgs& args, int64_t rows, const Passes& passes,
                               bool is_first) {
  const FloatAddress logits = passes.forward(batch_of_rows(rows, args.of.sequences), is_first);
  chooser_.choose(backend_.launcher(), logits, rows_.places(), args.of.sequences);
  backend_.launcher().launch(KernelName::kExtendChains, args, {});
}

void DeviceChains::record(const simt::Chains& chains, DeviceList& list, const Passes& passes) {
  const simt::DraftChainsArgs args{
      .of = chains,
      .rows = rows_.view(),
      .features = features_.view(),
      .chosen = rows_at<const int>(chooser_.chosen().address(), chains.sequences),
      .going = going_.rows(),
      .blocks = blocks_,
      .reads_features = reads_features() ? 1 : 0};
  const int64_t rows = int64_t{blocks_} * chains.sequences;
  backend_.record(&features_.recorded(), &list);
  backend_.launcher().launch(KernelName::kStartChains, args, {});
  if (reads_features()) passes.gather(rows);
  backend_.record(&rows_.recorded(), &list);
  record_pass(args, rows, passes, /*is_first=*/true);
  if (chains.levels > 1) {
    DeviceList level;
    backend_.record(&rows_.recorded(), &level);
    record_pass(args, chains.sequences, passes, /*is_first=*/false);
    list.repeat(going_.address(), chains.levels - 1, std::move(level));
  }
  backend_.record(nullptr, nullptr);
}

void DeviceChains::record_features(const simt::Chains& chains, DeviceList& list,
                                   const std::function<void(int64_t)>& keep) {
  backend_.record(&kept_.recorded(), &list);
  backend_.launcher().launch(KernelName::kPlaceChains, simt::PlaceChainsArgs{chains, kept_.view()}, {});
  keep((chains.levels + 1) * int64_t{chains.sequences});
  backend_.record(nullptr, nullptr);
}

}  // namespace outrider
