// SPDX-License-Identifier: Apache-2.0
#include "drafters/learned/target_tail.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace outrider {

void TargetTail::read_rows(const KvCache& cache, int64_t layers, std::span<const int32_t> slots, float* out,
                           int64_t stride) {
  const KvShape& shape = cache.shape();
  for (const int32_t slot : slots) {
    float* row = out;
    for (int64_t layer = shape.layer_count - layers; layer < shape.layer_count; ++layer) {
      for (const KvPart part : {KvPart::kKeys, KvPart::kValues}) {
        cache.storage().read({.layer = layer, .part = part, .slot = slot}, row, shape.head_dim);
        row += shape.kv_head_count * shape.head_dim;
      }
    }
    out += stride;
  }
}

void TargetTail::add(Entries& entries, std::span<const TokenId> tokens, FloatAddress rows, int64_t stride) {
  auto staged = cache_.stage(entries.kv, static_cast<int>(tokens.size()));
  OUTRIDER_CHECK(staged.ok());  // the drafter's own cache, which is as long, had pages for them
  const KvShape& shape = cache_.shape();
  const AttentionShape heads{.kv_head_count = shape.kv_head_count, .head_dim = shape.head_dim};
  const auto count = std::ssize(tokens);
  slots_.clear();
  for (int i = 0; i < count; ++i) slots_.push_back(staged->slot(i));
  path_.resize(tokens.size());
  std::iota(path_.begin(), path_.end(), 0);
  rows_.reserve(count, heads.qkv_size());
  LayerBackend& backend = target_->backend();
  for (int64_t layer = 0; layer < layers_; ++layer) {
    const FloatAddress from = rows + layer * heads.qkv_size();
    backend.copy_strided({from, stride, rows_.data(), heads.qkv_size(), count, heads.qkv_size()});
    backend.rotate_and_store({.shape = &heads,
                              .cache = &cache_,
                              .layer = shape.layer_count - layers_ + layer,
                              .qkv = rows_.data()},
                             {.rows = path_, .slots = slots_, .rotations = {}, .query_factors = {}});
  }
  staged->commit(path_, tokens);
}

bool TargetTail::stage(Entries& entries, int count) {
  entries.staged.reset();
  auto staged = cache_.stage(entries.kv, count);
  if (!staged.ok()) return false;
  entries.staged = std::move(*staged);
  entries.access = {.model = target_,
                    .cache = &cache_,
                    .sequence = &entries.kv,
                    .staged = &*entries.staged,
                    .exits = &entries.exits};
  return true;
}

}  // namespace outrider
