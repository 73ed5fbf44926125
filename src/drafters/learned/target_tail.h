// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "drafters/target_access.h"
#include "kv/kv_cache.h"
#include "models/backend/layer_backend.h"
#include "models/model.h"
#include "outrider/token.h"

namespace outrider {

// The last layers of a target; its other layers are on another machine. The keys and values of committed
// tokens in these layers come from there, as rows of [layers, keys and values] numbers.
class TargetTail {
 public:
  // `target` must outlive it. shape: with pages.
  TargetTail(Model* target, int64_t layers, const KvShape& shape)
      : target_(target),
        layers_(layers),
        cache_(shape, KvOptions(), target->make_storage(shape)),
        rows_(target->backend()) {}

  // Numbers of a row.
  static int64_t row_size(const KvShape& shape, int64_t layers) {
    return layers * 2 * shape.kv_head_count * shape.head_dim;
  }
  // Reads the rows of the tokens in these slots of the whole target's cache; they begin `stride` numbers
  // apart.
  static void read_rows(const KvCache& cache, int64_t layers, std::span<const int32_t> slots, float* out,
                        int64_t stride);

  // The entries of a sequence, which must not outlive the tail.
  struct Entries {
    KvSequence kv;
    std::optional<KvTransaction> staged;
    ExitStates exits;
    TargetAccess access;
  };
  void open(Entries& entries) { entries.kv = cache_.open({}); }
  // Adds the entries of the tokens that come next, of which the rows begin `stride` numbers apart.
  void add(Entries& entries, std::span<const TokenId> tokens, FloatAddress rows, int64_t stride);
  // Stages so many entries for a draft. False: there are no pages for them.
  bool stage(Entries& entries, int count);

 private:
  Model* target_;
  int64_t layers_;
  KvCache cache_;
  BackendRows rows_;            // [tokens, keys and values] of a layer
  std::vector<int32_t> slots_;  // scratch of add()
  std::vector<int> path_;       // 0, 1, ...
};

}  // namespace outrider
