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

void TargetTail::add(Entries& entries, std::span<const TokenId> tokens, const float* rows, int64_t stride) {
  auto staged = cache_.stage(entries.kv, static_cast<int>(tokens.size()));
  OUTRIDER_CHECK(staged.ok());  // the drafter's own cache, which is as long, had pages for them
  const KvShape& shape = cache_.shape();
  for (size_t i = 0; i < tokens.size(); ++i, rows += stride) {
    const float* row = rows;
    for (int64_t layer = shape.layer_count - layers_; layer < shape.layer_count; ++layer) {
      for (std::byte* out : {cache_.keys(layer), cache_.values(layer)}) {
        kernels_->store_kv({.x = row,
                            .out = out + staged->slot(static_cast<int>(i)) * shape.row_bytes(layer),
                            .type = shape.type,
                            .heads = shape.kv_head_count,
                            .head_dim = shape.head_dim});
        row += shape.kv_head_count * shape.head_dim;
      }
    }
  }
  path_.resize(tokens.size());
  std::iota(path_.begin(), path_.end(), 0);
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
