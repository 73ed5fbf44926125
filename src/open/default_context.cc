// SPDX-License-Identifier: Apache-2.0
#include "open/default_context.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/storage_type.h"
#include "models/decoder_weights.h"

namespace outrider {
namespace {

// Bytes that each token of one sequence takes in the caches of heads: keys and values of each of their layers
// with attention.
int64_t head_bytes_per_token(const HeadFile& head, DType type) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : head.tensors) {
    const bool is_cached = name.ends_with("k_proj.weight") || name.ends_with("v_proj.weight");
    if (is_cached && tensor.shape.size() == 2) bytes += cached_head_bytes(type, tensor.shape.front());
  }
  return bytes;
}

int64_t stored_bytes(const ModelFile& model) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : model.tensors) bytes += tensor.bytes();
  return bytes;
}

// Drafters have caches for all sequences of a batch; the target's pages are shared among these.
int64_t drafted_per_token(const EngineOptions& options, const DraftFiles& drafts) {
  const DType type = storage_type(options.kv_cache_type);
  int64_t drafted = drafts.head ? head_bytes_per_token(*drafts.head, type) : 0;
  for (const ModelFile& model : drafts.models) drafted += cache_bytes_per_token(model.config, type);
  return options.max_batch * drafted;
}

int64_t draft_weights(const DraftFiles& drafts) {
  int64_t weights = drafts.head ? stored_bytes(drafts.head->file) : 0;
  for (const ModelFile& model : drafts.models) weights += stored_bytes(model);
  return weights;
}

}  // namespace

int64_t trained_context(const ModelConfig& config) {
  int64_t context = config.max_context;
  for (const RopeTraits& rope : config.ropes) {
    if (rope.scaling.kind == RopeScalingKind::kLongRope)
      context = std::min(context, rope.scaling.original_context);
  }
  return context;
}

int64_t default_context(const EngineOptions& options, const ModelFile& target, const DraftFiles& drafts,
                        std::optional<int64_t> free_bytes) {
  constexpr int64_t kUnit = 1024;
  const int64_t trained = trained_context(target.config);
  const int64_t per_token = cache_bytes_per_token(target.config, storage_type(options.kv_cache_type)) +
                            drafted_per_token(options, drafts);
  if (trained <= kUsualContext || !free_bytes) return std::min(trained, kUsualContext);
  if (per_token == 0) return trained;  // no layer has attention
  const int64_t weights = stored_bytes(target) + draft_weights(drafts);
  const int64_t held = (*free_bytes - weights) / 3 / per_token;
  return std::clamp(held / kUnit * kUnit, kUsualContext, trained);
}

int64_t draft_bytes(const EngineOptions& options, const DraftFiles& drafts, int64_t context) {
  if (options.draft_ranks > 0) return 0;
  return draft_weights(drafts) + context * drafted_per_token(options, drafts);
}

std::string context_note(int64_t context, const ModelConfig& config) {
  const int64_t trained = trained_context(config);
  std::string text = fmt::format("context of {} tokens", context);
  if (context < trained)
    text += fmt::format(" of the {} that the model was made for; --ctx asks for more", trained);
  return text;
}

}  // namespace outrider
