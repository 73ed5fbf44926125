// SPDX-License-Identifier: Apache-2.0
#include "models/weights/weight_stream.h"

#include <algorithm>
#include <string>
#include <utility>

namespace outrider {
namespace {

std::string rounded_megabytes(int64_t bytes) { return std::to_string((bytes + 999'999) / 1'000'000) + " MB"; }

ExpertSizes sizes_of(const ExpertStream::Experts& experts, int64_t used) {
  ExpertSizes sizes{.used = used};
  for (const std::vector<StoredPart>& layer : experts) {
    sizes.count += std::ssize(layer);
    sizes.layers += layer.empty() ? 0 : 1;
    for (const StoredPart& expert : layer)
      sizes.bytes = std::max(sizes.bytes, static_cast<int64_t>(expert.bytes));
  }
  return sizes;
}

}  // namespace

std::unique_ptr<WeightStream> WeightStream::plan_of(std::span<const StoredPart> layers,
                                                    const ExpertStream::Experts& experts, int64_t used) {
  std::unique_ptr<WeightStream> stream(new WeightStream());
  for (const StoredPart& layer : layers) stream->layer_bytes_.push_back(layer.bytes);
  stream->expert_sizes_ = sizes_of(experts, used);
  stream->plan_ = plan_memory(stream->layer_bytes_, stream->expert_sizes_, 0);
  return stream;
}

Result<std::unique_ptr<WeightStream>> WeightStream::open(const std::filesystem::path& path,
                                                         std::vector<StoredPart> layers,
                                                         ExpertStream::Experts experts, int64_t used) {
  std::unique_ptr<WeightStream> stream = plan_of(layers, experts, used);
  OUTRIDER_TRY(stream->layers_, LayerStream::open(path, std::move(layers)));
  if (stream->expert_count() > 0) {
    OUTRIDER_TRY(stream->experts_, ExpertStream::open(path, std::move(experts)));
  }
  return stream;
}

Status WeightStream::keep(int64_t bytes) {
  plan_ = plan_memory(layer_bytes_, expert_sizes_, bytes);
  if (plan_.memory > bytes) {
    return resource_error("weights that are read need " + rounded_megabytes(plan_.memory) +
                          " of memory, found " + rounded_megabytes(std::max<int64_t>(bytes, 0)));
  }
  if (layers_) OUTRIDER_RETURN_IF_ERROR(layers_->keep(plan_.layers));
  return experts_ ? experts_->keep(plan_.kept_experts) : Status();
}

}  // namespace outrider
