// SPDX-License-Identifier: Apache-2.0
// Which weights of a model stay in memory, and which are read from a file in every pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace outrider {

// Which layers are read in every pass. The experts of a layer are planned by themselves.
struct StreamPlan {
  std::vector<bool> streamed;  // [layers]
  int64_t streamed_bytes = 0;
  int64_t memory = 0;  // bytes of the other layers, and of the two buffers that streamed ones are read into
};

// The fewest streamed layers with which the others and the buffers fit into `memory` bytes, spread evenly so
// that reads have time between them. All layers are streamed where `memory` is too little for anything else.
StreamPlan plan_streaming(std::span<const size_t> layer_bytes, int64_t memory);

struct ExpertSizes {
  int64_t count = 0;   // in all layers
  int64_t bytes = 0;   // of one, the largest
  int64_t used = 0;    // by a row in a layer
  int64_t layers = 0;  // that have experts
};

struct MemoryPlan {
  StreamPlan layers;
  int64_t kept_experts = 0;  // experts that there is room for
  int64_t memory = 0;        // bytes in all
  int64_t row_bytes = 0;     // that a pass over one row reads, if rows choose all experts alike
};

// Layers come first, because every pass uses them; the experts have the rest. `memory` of the plan is more
// than asked for where even the buffers do not fit.
MemoryPlan plan_memory(std::span<const size_t> layer_bytes, const ExpertSizes& experts, int64_t memory);

}  // namespace outrider
