// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernel_table.h"
#include "kv/kv_cache.h"
#include "models/backend/attention_shape.h"
#include "models/pass_profile.h"
#include "models/sharding/shard_exchange.h"
#include "models/weights/norm.h"
#include "models/weights/weight_loader.h"

namespace outrider {

// Rows of f32 that grow with the largest batch seen and never shrink, so that a steady state does not
// allocate.
class Scratch {
 public:
  // Growing loses the contents.
  void reserve(int64_t rows, int64_t dim) {
    const auto bytes = static_cast<size_t>(rows * dim) * sizeof(float);
    if (buffer_.size() < bytes) buffer_ = Buffer(bytes);
  }
  float* data() { return buffer_.as<float>().data(); }

 private:
  Buffer buffer_;
};

// The operations of a layer over the rows of one pass. Each runs on all workers and ends with a barrier. The
// object holds the scratch that products need; no other state lasts from call to call.
class LayerOps {
 public:
  // All must outlive it. exchange: with the other shards of a layer; null: there are none.
  LayerOps(const KernelTable* kernels, ThreadPool* pool, ShardExchange* exchange = nullptr)
      : kernels_(kernels), pool_(pool), exchange_(exchange) {}

  ThreadPool& pool() const { return *pool_; }
  // From now on operations add their times to the profile; nullptr: to none.
  void measure_into(PassProfile* profile) { profile_ = profile; }
  OperationTimer time(std::string_view name, const OperationCost& cost = {}) const {
    return {profile_, name, cost};
  }
  // Makes room for products of `rows` rows; without it the first products allocate.
  void reserve(const Projection& projection, int64_t rows);

  // y[rows, n] = x[rows, k] W' + bias; where the projection is cut, x is this shard's part of the inputs, and
  // y has the outputs of all shards
  void project(const Projection& projection, const float* x, float* y, int64_t rows);
  // whole[rows, sum of shares] = the columns of all shards, of which `part` are this shard's
  void gather(const float* part, const ShardExchange::Columns& columns, float* whole, int64_t rows) const;
  // y = RMSNorm(x) * weight, [rows, weight.size()]; y may be x.
  void normalize(const float* x, std::span<const float> weight, float* y, int64_t rows, float epsilon) const;
  // y = norm(x), [rows, size]; y may be x.
  void normalize(const float* x, const Norm& norm, float* y, int64_t rows) const;
  // A row has the parts of all norms side by side, which are of one size; y may be x.
  void normalize_parts(const float* x, std::span<const Norm> parts, float* y, int64_t rows) const;
  // x += delta, then y = norm(x) unless the norm is empty
  struct AddAndNormalize {
    float* x = nullptr;            // [rows, dim]
    const float* delta = nullptr;  // [rows, dim], or null: nothing to add
    const Norm* norm = nullptr;
    float* y = nullptr;  // [rows, dim]
    int64_t rows = 0;
    int64_t dim = 0;
  };
  void add_and_normalize(const AddAndNormalize& args) const;
  void activate(const ActivationArgs& args) const;
  // x[i] += y[i], and x[i] *= factor, over that many numbers
  void add(const float* y, float* x, int64_t numbers) const;
  void scale(float factor, float* x, int64_t numbers) const;
  // x[i] *= sigmoid(gates[i]) over that many numbers
  void gate(const float* gates, float* x, int64_t numbers) const;
  // x = cap * tanh(x / cap) over `count` numbers.
  void softcap(float* x, int64_t count, float cap) const;
  // x[i] is limited to [-limit, limit]; NaN stays NaN.
  void clamp(float limit, float* x, int64_t numbers) const;

  // Row i of qkv is row rows[i] of the batch. Queries, keys and values are normalized (where norms are
  // given), queries and keys are rotated, and queries are scaled; keys and values go to the cache.
  struct RotateAndStore {
    float* qkv = nullptr;  // [rows, shape.qkv_size()], changed in place
    std::span<const int32_t> rows;
    std::span<const int32_t> slots;  // [batch rows]
    RowRotations rotations;
    std::span<const float> query_factors = {};  // [batch rows], or empty: 1
    std::span<const float> q_norm, k_norm;
    std::span<const float> v_norm = {};
    KvCache* cache = nullptr;
    int64_t layer = 0;  // layer of the cache
  };
  void rotate_and_store(const AttentionShape& shape, const RotateAndStore& args) const;

  // Attention of every row over the cached entries it sees: y is [rows, q_size]. Each row of qkv begins with
  // its queries.
  struct Attend {
    const float* qkv = nullptr;  // [rows, shape.qkv_size()]
    std::span<const AttentionRow> rows;
    KvCache* cache = nullptr;
    int64_t layer = 0;
    std::span<const float> sinks = {};  // [head_count], or empty
    float* y = nullptr;
  };
  void attend(const AttentionShape& shape, const Attend& args) const;

  // The number of workers that an element-wise stage over that many numbers is worth. The bits of a share do
  // not depend on the worker that computes it.
  int shares_for(int64_t numbers) const;
  const KernelTable& kernels() const { return *kernels_; }

 private:
  // One stage: matrices that read their inputs in one form.
  struct Product {
    std::string_view name;
    std::span<const PackedMatrix> parts;
    const float* x = nullptr;
    float* y = nullptr;
    int64_t rows = 0;
  };
  void project_share(const Projection& projection, const float* x, float* y, int64_t rows);
  void multiply(const Product& product);
  void pack_inputs(const LinearArgs& args) const;

  const KernelTable* kernels_;
  ThreadPool* pool_;
  ShardExchange* exchange_;
  PassProfile* profile_ = nullptr;
  Scratch parts_;     // [rows, n] for each part of a projection, part after part
  Scratch packed_x_;  // inputs of a projection in the form that its weights ask for
  Scratch inputs_;    // [rows, k] of a cut projection
  Scratch outputs_;   // [rows, n] of a cut projection
};

// Row `row` of `rows` rows of a product.
struct ProductRow {
  int64_t row = 0;
  int64_t rows = 0;
};

// Completes a row of a product: gathers it from `parts`, where the outputs of several parts stand one after
// the other, each [rows, part.n], and adds the bias.
void finish_row(const Projection& projection, const float* parts, ProductRow which, float* y);

}  // namespace outrider
