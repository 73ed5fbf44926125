// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/kv_cache.h"
#include "models/backend/host/host_step.h"
#include "models/blocks/low_rank/adapter_set.h"

namespace outrider {

// Neighbouring rows that the same adapters change.
struct AdaptedRows {
  int64_t begin = 0;
  int64_t count = 0;
  std::span<const ScaledAdapter> adapters;
};

// Adds the updates of a product to its outputs: y += factor * scale * B (A x), for each adapter of a row in
// their order. Products and sums are f32 in the order of the kernel table, and each row is computed by
// itself, so that its bits depend on no other row.
class LowRankOps {
 public:
  explicit LowRankOps(LayerOps& ops) : ops_(ops) {}

  struct Product {
    const AdapterSet& adapters;
    const Projection& projection;
    std::span<const AdaptedRows> rows;
    const float* x = nullptr;  // [rows, k]
    float* y = nullptr;        // [rows, n]
  };
  void run(const Product& product);

 private:
  // An update of some rows: the unit that workers take.
  struct Task {
    const PackedUpdate* update = nullptr;
    float factor = 1;
    int64_t row = 0;
    int64_t rows = 0;
    int64_t inner = 0;  // place of A x [rows, rank] in inner_
  };
  // The tasks of one round: no two of them add to one output.
  int64_t list_tasks(const Product& product, size_t round);
  void reserve(const Product& product, int64_t inner);
  void reduce(const Task& task, const Product& product, std::byte* packed);
  void expand(const Task& task, const Product& product, float* outputs, std::byte* packed);

  LayerOps& ops_;
  std::vector<Task> tasks_;
  Scratch inner_;    // A x of all tasks
  Scratch outputs_;  // [workers, rows of a task, n]: B (A x)
  Scratch packed_;   // [workers, numbers]: inputs in the form that the products read
  int64_t output_stride_ = 0, packed_stride_ = 0;
};

struct LowRankStep final : HostStep {
  void run(Host& host) override {
    host.shared<LowRankOps>(host.ops()).run({*adapters, *projection, rows, host.at(x), host.at(y)});
  }

  const AdapterSet* adapters = nullptr;
  const Projection* projection = nullptr;
  std::span<const AdaptedRows> rows;
  FloatAddress x, y;
};

}  // namespace outrider
