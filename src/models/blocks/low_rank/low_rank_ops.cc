// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/low_rank/low_rank_ops.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr int64_t kTaskRows =
    24;  // two tiles of rows: enough work for a task, small enough to share a prompt

// Space of one worker, in whole cache lines.
int64_t whole_lines(int64_t numbers) { return (numbers + 15) / 16 * 16; }

}  // namespace

int64_t LowRankOps::list_tasks(const Product& product, size_t round) {
  tasks_.clear();
  int64_t inner = 0;
  for (const AdaptedRows& rows : product.rows) {
    if (round >= rows.adapters.size()) continue;
    const ScaledAdapter& adapter = rows.adapters[round];
    for (const PackedUpdate& update : product.adapters.updates(adapter.adapter, product.projection)) {
      for (int64_t at = 0; at < rows.count; at += kTaskRows) {
        const int64_t count = std::min(kTaskRows, rows.count - at);
        tasks_.push_back({&update, adapter.factor, rows.begin + at, count, inner});
        inner += whole_lines(count * update.a.n);
      }
    }
  }
  return inner;
}

void LowRankOps::reserve(const Product& product, int64_t inner) {
  int64_t packed = 0;
  for (const Task& task : tasks_) {
    for (const PackedMatrix* matrix : {&task.update->a, &task.update->b})
      packed = std::max(packed, input_bytes(matrix->inputs, task.rows, matrix->k));
  }
  packed_stride_ = whole_lines((packed + 3) / 4);
  output_stride_ = whole_lines(kTaskRows * product.projection.n);
  inner_.reserve(1, inner);
  outputs_.reserve(ops_.pool().size(), output_stride_);
  packed_.reserve(ops_.pool().size(), packed_stride_);
}

void LowRankOps::run(const Product& product) {
  size_t rounds = 0;
  for (const AdaptedRows& rows : product.rows) rounds = std::max(rounds, rows.adapters.size());
  for (size_t round = 0; round < rounds; ++round) {
    const int64_t inner = list_tasks(product, round);
    if (tasks_.empty()) continue;
    reserve(product, inner);
    const OperationTimer timer = ops_.time("adapters");
    const auto for_each = [&](auto&& work) {
      ops_.pool().run([&](Worker worker) {
        const Range share = share_of(worker, std::ssize(tasks_));
        for (int64_t i = share.begin; i < share.end; ++i) work(tasks_[static_cast<size_t>(i)], worker.index);
      });
    };
    const auto packed = [&](int worker) {
      return reinterpret_cast<std::byte*>(packed_.data() + worker * packed_stride_);
    };
    for_each([&](const Task& task, int worker) { reduce(task, product, packed(worker)); });
    for_each([&](const Task& task, int worker) {
      expand(task, product, outputs_.data() + worker * output_stride_, packed(worker));
    });
  }
}

// inner = A x
void LowRankOps::reduce(const Task& task, const Product& product, std::byte* packed) {
  const LinearArgs args{.weights = &task.update->a,
                        .x = product.x + task.row * product.projection.k,
                        .packed_x = packed,
                        .y = inner_.data() + task.inner,
                        .rows = task.rows};
  ops_.kernels().pack_inputs(args, Worker{});
  ops_.kernels().linear(args, Worker{});
}

// y += factor * scale * B inner
void LowRankOps::expand(const Task& task, const Product& product, float* outputs, std::byte* packed) {
  const PackedUpdate& update = *task.update;
  const int64_t n = update.b.n;
  const LinearArgs args{.weights = &update.b,
                        .x = inner_.data() + task.inner,
                        .packed_x = packed,
                        .y = outputs,
                        .rows = task.rows};
  ops_.kernels().pack_inputs(args, Worker{});
  ops_.kernels().linear(args, Worker{});
  const float scale = task.factor * update.scale;
  for (int64_t row = 0; row < task.rows; ++row) {
    float* y = product.y + (task.row + row) * product.projection.n + update.first_output;
    for (int64_t i = 0; i < n; ++i) y[i] += scale * outputs[row * n + i];
  }
}

}  // namespace outrider
