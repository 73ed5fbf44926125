// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/low_rank/low_rank_ops.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr int64_t kTaskRows =
    24;  // two tiles of rows: enough work for a task, small enough to share a prompt
// Multiplications from which handing a part of them over (about 0.5 us each way) saves time.
constexpr int64_t kWorthSharing = 50'000;

// Space of one worker, in whole cache lines.
int64_t whole_lines(int64_t numbers) { return (numbers + 15) / 16 * 16; }

}  // namespace

int64_t LowRankOps::list_tasks(const Product& product, size_t round) {
  tasks_.clear();
  inner_size_ = 0;
  int64_t operations = 0;
  for (const AdaptedRows& rows : product.rows) {
    if (round >= rows.adapters.size()) continue;
    const ScaledAdapter& adapter = rows.adapters[round];
    const PackedUpdates* updates = product.adapters.updates(adapter.adapter, product.projection).get();
    if (updates == nullptr) continue;
    operations += rows.count * updates->operations();
    for (int64_t at = 0; at < rows.count; at += kTaskRows) {
      const int64_t count = std::min(kTaskRows, rows.count - at);
      tasks_.push_back({updates, adapter.factor, rows.begin + at, count, inner_size_});
      inner_size_ += whole_lines(count * updates->a.n);
    }
  }
  return operations;
}

void LowRankOps::reserve(const Product& product) {
  int64_t packed = 0, inner = 0;
  for (const Task& task : tasks_) {
    packed = std::max(packed, input_bytes(task.updates->a.inputs, task.rows, task.updates->a.k));
    for (const PackedUpdates::Expansion& expansion : task.updates->expansions)
      packed = std::max(packed, input_bytes(expansion.b.inputs, task.rows, expansion.b.k));
    inner = std::max(inner, task.rows * task.updates->a.n);
  }
  packed_stride_ = whole_lines((packed + 3) / 4);
  output_stride_ = whole_lines(kTaskRows * product.projection.n) + whole_lines(inner);
  inner_.reserve(1, inner_size_);
  outputs_.reserve(ops_.pool().size(), output_stride_);
  packed_.reserve(ops_.pool().size(), packed_stride_);
}

template <typename Work>
void LowRankOps::for_each_piece(int64_t operations, Work&& work) {
  const int workers = operations < kWorthSharing ? 1 : ops_.pool().size();
  const auto tasks = std::ssize(tasks_);
  const auto shares = static_cast<int>((workers + tasks - 1) / tasks);  // of each task
  ops_.pool().run(workers, [&](Worker worker) {
    const Range range = share_of(worker, tasks * shares);
    for (int64_t i = range.begin; i < range.end; ++i) {
      work(Piece{.task = tasks_[static_cast<size_t>(i / shares)],
                 .share = {static_cast<int>(i % shares), shares},
                 .outputs = outputs_.data() + worker.index * output_stride_,
                 .packed = reinterpret_cast<std::byte*>(packed_.data() + worker.index * packed_stride_)});
    }
  });
}

void LowRankOps::run(const Product& product) {
  size_t rounds = 0;
  for (const AdaptedRows& rows : product.rows) rounds = std::max(rounds, rows.adapters.size());
  for (size_t round = 0; round < rounds; ++round) {
    const int64_t operations = list_tasks(product, round);
    if (tasks_.empty()) continue;
    reserve(product);
    const OperationTimer timer = ops_.time("adapters");
    for_each_piece(operations, [&](const Piece& piece) { reduce(piece, product); });
    for_each_piece(operations, [&](const Piece& piece) { expand(piece, product); });
  }
}

// inner = A x
void LowRankOps::reduce(const Piece& piece, const Product& product) {
  const Task& task = piece.task;
  const PackedMatrix& a = task.updates->a;
  if (const Range own = share_of(piece.share, a.n, a.panel_features); own.begin == own.end) return;
  const LinearArgs args{.weights = &a,
                        .x = product.x + task.row * product.projection.k,
                        .packed_x = piece.packed,
                        .y = inner_.data() + task.inner,
                        .rows = task.rows};
  ops_.kernels().pack_inputs(args, {0, 1});
  ops_.kernels().linear(args, piece.share);
}

// y += factor * scale * B inner
void LowRankOps::expand(const Piece& piece, const Product& product) {
  const Task& task = piece.task;
  const int64_t ranks = task.updates->a.n;
  float* const inputs = piece.outputs + whole_lines(kTaskRows * product.projection.n);
  for (const PackedUpdates::Expansion& expansion : task.updates->expansions) {
    const int64_t n = expansion.b.n, rank = expansion.b.k;
    const Range own = share_of(piece.share, n, expansion.b.panel_features);
    if (own.begin == own.end) continue;
    for (int64_t row = 0; row < task.rows; ++row)
      std::copy_n(inner_.data() + task.inner + row * ranks + expansion.first_rank, rank, inputs + row * rank);
    const LinearArgs args{.weights = &expansion.b,
                          .x = inputs,
                          .packed_x = piece.packed,
                          .y = piece.outputs,
                          .rows = task.rows};
    ops_.kernels().pack_inputs(args, {0, 1});
    ops_.kernels().linear(args, piece.share);
    const float scale = task.factor * expansion.scale;
    for (int64_t row = 0; row < task.rows; ++row) {
      float* y = product.y + (task.row + row) * product.projection.n + expansion.first_output;
      for (int64_t i = own.begin; i < own.end; ++i) y[i] += scale * piece.outputs[row * n + i];
    }
  }
}

}  // namespace outrider
