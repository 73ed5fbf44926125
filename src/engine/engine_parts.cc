// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_parts.h"

#include <algorithm>

#include "config/methods.h"

namespace outrider {
namespace {

// Drafted rows if options.max_batch_rows sets no limit: large trees share as many rows as the small trees of
// a large batch take.
int64_t max_drafted(const EngineParts& parts) {
  constexpr int64_t kMaxDrafted = 1024;
  const int64_t nodes = std::max(max_nodes(parts), parts.options.offered_nodes);
  return std::min(parts.options.max_batch * nodes, std::max(nodes, kMaxDrafted));
}

// Chains from predictions share those rows, because few sequences of a batch have one.
int64_t max_logits_without_limit(const EngineParts& parts) {
  return parts.options.max_batch + std::max<int64_t>(max_drafted(parts), max_predicted(parts));
}

}  // namespace

int max_draft_len(const EngineParts& parts) { return limits_of(parts.options.speculation).max_draft_len; }

int max_nodes(const EngineParts& parts) { return limits_of(parts.options.speculation).max_nodes; }

int max_predicted(const EngineParts& parts) { return max_draft_len(parts) == 0 ? 0 : kMaxDraftLen; }

DraftLimits tree_limits(const EngineParts& parts) {
  const DraftLimits drafted = limits_of(parts.options.speculation);
  const int offered = parts.options.offered_nodes;
  const int predicted = max_predicted(parts);
  return {.max_draft_len = std::max({drafted.max_draft_len, std::min(offered, kMaxDraftLen), predicted}),
          .max_nodes = std::max({drafted.max_nodes, offered, predicted})};
}

ForwardBatch::Limits batch_limits(const EngineParts& parts) {
  const EngineOptions& options = parts.options;
  const DraftLimits trees = tree_limits(parts);
  return {.rows = options.max_batch_rows != 0 ? options.max_batch_rows
                                              : options.prefill_chunk + max_logits_without_limit(parts),
          .max_sequences = options.max_batch,
          .max_entries = options.context + 1 + trees.max_nodes,
          .page_size = options.page_size,
          .max_draft_len = trees.max_draft_len};
}

int64_t usual_logits(const EngineParts& parts) {
  return std::min(max_logits(parts), parts.options.max_batch + max_drafted(parts));
}

int64_t max_logits(const EngineParts& parts) {
  return std::min(batch_limits(parts).rows, max_logits_without_limit(parts));
}

}  // namespace outrider
