// SPDX-License-Identifier: Apache-2.0
// The attention of a layer, and what its rows see, as plain values.
#pragma once

#include <cstdint>
#include <span>

#include "formats/model_config.h"
#include "kernels/kernel_args.h"
#include "models/forward_batch.h"
#include "models/sharding/shard.h"

namespace outrider {

class RotaryEmbedding;

// One layer's attention as its kernels see it.
struct AttentionShape {
  // The shape of the heads of layer `layer` that a shard has.
  static AttentionShape of(const ModelConfig& config, int64_t layer, Shard shard = {});

  int64_t head_count = 0;
  int64_t kv_head_count = 0;
  int64_t head_dim = 0;
  int64_t window = 0;  // this and the next four: see AttentionArgs
  int64_t chunk = 0;
  float scale = 0;
  float softcap = 0;
  std::span<const float> slopes = {};  // [head_count], or empty
  bool values_are_keys = false;        // see KvShape
  bool stores = true;                  // its own keys and values; else it reads another layer's
  // The next three belong to norms of queries, keys and values.
  float epsilon = 0;
  NormKind norm_kind = NormKind::kRms;
  QkNorm qk_norm = QkNorm::kHead;

  int64_t q_size() const { return head_count * head_dim; }
  int64_t kv_size() const { return kv_head_count * head_dim; }
  int64_t qkv_size() const { return q_size() + (stores ? (values_are_keys ? 1 : 2) * kv_size() : 0); }
};

// The rotations of the rows of a batch, [batch rows, dim], see fill_rotations; null: there are none.
struct RowRotations {
  const float* numbers = nullptr;
  int64_t dim = 0;                          // numbers of a head that turn
  const RotaryEmbedding* of_all = nullptr;  // the rotations of every position
};

// The factors of the queries of the rows of a batch; empty: 1.
struct QueryFactors {
  std::span<const float> numbers = {};       // [batch rows]
  const QueryTemperature* of_all = nullptr;  // what decides them for every position

  bool empty() const { return numbers.empty(); }
};
float query_factor(const QueryTemperature& temperature, int32_t position);

// The description of a row of the batch that attention reads.
AttentionRow attention_row(const ForwardBatch& batch, int32_t row);

}  // namespace outrider
