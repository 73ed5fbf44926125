// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "models/weights/expert_stream.h"
#include "models/weights/layer_stream.h"
#include "outrider/result.h"

namespace outrider {

// The weights of a model that is larger than the memory it may use: its layers, and the experts of its
// layers.
class WeightStream {
 public:
  // Only plans what is kept: no pass can run. `used`: experts that a row uses in a layer.
  static std::unique_ptr<WeightStream> plan_of(std::span<const StoredPart> layers,
                                               const ExpertStream::Experts& experts, int64_t used);
  // The matrices must outlive the stream and stay in place.
  // Error: the file cannot be opened.
  static Result<std::unique_ptr<WeightStream>> open(const std::filesystem::path& path,
                                                    std::vector<StoredPart> layers,
                                                    ExpertStream::Experts experts, int64_t used);

  // Keeps as much as `bytes` allow, see plan_memory(). Called once, before the first pass. Errors: `bytes`
  // are too few for the buffers; errors of reading.
  Status keep(int64_t bytes);

  LayerStream& layers() { return *layers_; }
  ExpertStream* experts() { return experts_.get(); }  // null: no layer has any

  const MemoryPlan& plan() const { return plan_; }
  int64_t expert_count() const { return expert_sizes_.count; }
  double rate() const { return std::max(layers_ ? layers_->rate() : 0, experts_ ? experts_->rate() : 0); }
  int64_t bytes_read() const {
    return (layers_ ? layers_->bytes_read() : 0) + (experts_ ? experts_->bytes_read() : 0);
  }
  double waited_ms() const {
    return (layers_ ? layers_->waited_ms() : 0) + (experts_ ? experts_->waited_ms() : 0);
  }

 private:
  WeightStream() = default;

  std::vector<size_t> layer_bytes_;  // [layers], without experts
  ExpertSizes expert_sizes_;
  MemoryPlan plan_;
  std::unique_ptr<LayerStream> layers_;  // null: only a plan
  std::unique_ptr<ExpertStream> experts_;
};

}  // namespace outrider
