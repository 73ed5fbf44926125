// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "models/weights/expert_stream.h"
#include "models/weights/layer_stream.h"
#include "outrider/result.h"

namespace outrider {

// The weights of a model that is larger than the memory it may use: its layers, and the experts of its
// layers.
class WeightStream {
 public:
  // The matrices must outlive the stream and stay in place. `used`: experts that a row uses in a layer.
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
  double rate() const { return std::max(layers_->rate(), experts_ ? experts_->rate() : 0); }
  int64_t bytes_read() const { return layers_->bytes_read() + (experts_ ? experts_->bytes_read() : 0); }
  double waited_ms() const { return layers_->waited_ms() + (experts_ ? experts_->waited_ms() : 0); }

 private:
  WeightStream() = default;

  std::vector<size_t> layer_bytes_;  // [layers], without experts
  ExpertSizes expert_sizes_;
  MemoryPlan plan_;
  std::unique_ptr<LayerStream> layers_;
  std::unique_ptr<ExpertStream> experts_;
};

}  // namespace outrider
