// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_parts.h"

#include <algorithm>

#include "drafters/registry.h"

namespace outrider {
namespace {

// Rows of pending tokens and trees if options.max_batch_rows sets no limit: large trees share as many rows as
// the small trees of a large batch take.
int64_t max_logits_without_limit(const EngineParts& parts) {
  constexpr int64_t kMaxDrafted = 1024;
  const int64_t batch = parts.options.max_batch;
  const int64_t nodes = max_nodes(parts);
  return batch + std::min(batch * nodes, std::max(nodes, kMaxDrafted));
}

}  // namespace

int max_depth(const EngineParts& parts) { return limits_of(parts.options.speculation).depth; }

int max_nodes(const EngineParts& parts) { return limits_of(parts.options.speculation).nodes; }

ForwardBatch::Limits batch_limits(const EngineParts& parts) {
  const EngineOptions& options = parts.options;
  const int64_t tree = 1 + max_nodes(parts);
  return {.rows = options.max_batch_rows != 0 ? options.max_batch_rows
                                              : options.prefill_chunk + max_logits_without_limit(parts),
          .max_sequences = options.max_batch,
          .max_entries = options.context + tree,
          .page_size = options.page_size,
          .max_depth = max_depth(parts)};
}

int64_t max_logits(const EngineParts& parts) {
  return std::min(batch_limits(parts).rows, max_logits_without_limit(parts));
}

}  // namespace outrider
