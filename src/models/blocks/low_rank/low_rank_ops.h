// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/kv_cache.h"
#include "models/backend/host/host.h"
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
  // The updates of some rows by one adapter.
  struct Task {
    const PackedUpdates* updates = nullptr;
    float factor = 1;
    int64_t row = 0;
    int64_t rows = 0;
    int64_t inner = 0;  // place of A x [rows, sum of ranks] in inner_
  };
  // A part of a task: the outputs that a worker of so many would compute.
  struct Piece {
    const Task& task;
    Worker share;
    float* outputs = nullptr;     // room for B (A x) and for its inputs
    std::byte* packed = nullptr;  // room for inputs in the form that products read
  };

  // Lists the tasks of one round, of which no two add to one output; returns the multiplications.
  int64_t list_tasks(const Product& product, size_t round);
  void reserve(const Product& product);
  // Runs work(piece) for all pieces of the tasks on all workers, or here where that is quicker.
  template <typename Work>
  void for_each_piece(int64_t operations, Work&& work);
  void reduce(const Piece& piece, const Product& product);
  void expand(const Piece& piece, const Product& product);

  LayerOps& ops_;
  std::vector<Task> tasks_;
  int64_t inner_size_ = 0;
  Scratch inner_;    // A x of all tasks
  Scratch outputs_;  // [workers, numbers]
  Scratch packed_;   // [workers, numbers]
  int64_t output_stride_ = 0, packed_stride_ = 0;
};

}  // namespace outrider
