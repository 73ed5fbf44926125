// SPDX-License-Identifier: Apache-2.0
// Rows of drafted trees, and the launches of device attention, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "device_kernels/attention/attention.h"
#include "device_kernels/kernel_comparison.h"
#include "device_kernels/products/product_test_data.h"
#include "kernels/attention_test_data.h"

namespace outrider {

// Rows of a drafted tree on a prefix, and rows of a prompt, whose prefixes end earlier.
struct TreeRows {
  std::vector<std::vector<int32_t>> tails;
  std::vector<AttentionRow> rows;

  TreeRows(const PagedCache& cache, int length, int nodes, uint64_t seed) {
    std::mt19937_64 engine(seed);
    std::vector<int> parents;
    for (int i = 0; i < nodes; ++i)
      parents.push_back(i == 0 ? -1 : static_cast<int>(engine() % static_cast<uint64_t>(i)));
    for (int i = 0; i < nodes; ++i) {
      std::vector<int32_t>& tail = tails.emplace_back();
      for (int node = i; node >= 0; node = parents[static_cast<size_t>(node)])
        tail.insert(tail.begin(), length + node);
    }
    for (const auto& tail : tails)
      rows.push_back({cache.pages.data(), length, tail.data(), static_cast<int32_t>(tail.size())});
    for (int i = 0; i < 3; ++i) rows.push_back({cache.pages.data(), std::max(length - i * 5, 1), nullptr, 0});
  }
};

// Lists of rows as kernels read them.
struct RowLists {
  std::vector<int> entries, pages, tails;

  RowLists(const std::vector<AttentionRow>& rows, const std::vector<int32_t>& all_pages)
      : pages(all_pages.begin(), all_pages.end()) {
    for (const AttentionRow& row : rows) {
      entries.insert(entries.end(), {0, row.prefix_len, static_cast<int>(tails.size()), row.tail_len});
      tails.insert(tails.end(), row.tail, row.tail + row.tail_len);
    }
  }
};

// Launches of attention over lists that may change in between. Scratch has just enough numbers, and NaN at
// the beginning.
template <typename Cached>
class AttentionLaunches {
 public:
  AttentionLaunches(const AttentionTestShape& shape, const PagedCache& cache, const RowLists& lists)
      : shape_(shape), cache_(cache), lists_(lists) {
    int longest = 0;
    for (size_t i = 0; i < lists.entries.size(); i += simt::RowEntries::kNumbers)
      longest = std::max(longest, lists.entries[i + 1] + lists.entries[i + 3]);
    const int chunks =
        simt::chunks_within(longest, static_cast<int>(shape.window), static_cast<int>(shape.chunk));
    const auto heads = static_cast<size_t>(chunks * row_count() * shape.head_count);
    arrivals.assign(static_cast<size_t>(row_count() * shape.head_count), 0);
    softmax.assign(heads * simt::kSoftmaxNumbers, std::nanf(""));
    y.assign(heads * static_cast<size_t>(shape.head_dim), std::nanf(""));
  }

  struct Launch {
    KernelName kernel;
    int blocks = 0;  // 0: a warp for each item
    EmulationOptions options = {};
    PackedInputs* packed = nullptr;  // where outputs become codes, too; null: nowhere
    int warps = 4;
    int warp_bytes = 0;  // shared memory of a warp
  };
  simt::EmulationReport attend(const Launch& launch, const Floats& q, Floats& whole) {
    const auto args = attention_args(launch, q, whole);
    const int warps = launch.warps;
    const auto items = static_cast<int>(y.size() / static_cast<size_t>(shape_.head_dim)) *
                       simt::slices_of(args.merged.head_dim);
    const int blocks = launch.blocks > 0 ? launch.blocks : std::max((items + warps - 1) / warps, 1);
    return emulate(launch.kernel, args,
                   {.blocks = blocks, .warps = warps, .shared_bytes = warps * launch.warp_bytes},
                   launch.options);
  }

  Floats softmax, y;          // of chunks
  std::vector<int> arrivals;  // 0 between launches

 private:
  using Stored = typename Cached::Stored;

  int row_count() const { return static_cast<int>(std::ssize(lists_.entries) / simt::RowEntries::kNumbers); }
  static simt::Weights<float> numbers_of_heads(const Floats& numbers) {
    return numbers.empty() ? simt::Weights<float>{} : weights_of_test(numbers);
  }
  simt::SeenEntries seen() const {
    return {.entries = {lists_.entries.data(), std::ssize(lists_.entries)},
            .rows = row_count(),
            .window = static_cast<int>(shape_.window),
            .chunk = static_cast<int>(shape_.chunk)};
  }
  simt::AttentionArgs<Cached> attention_args(const Launch& launch, const Floats& q, Floats& whole) {
    const auto view = [](const std::vector<std::byte>& bytes) {
      return simt::Rows<const Stored>{reinterpret_cast<const Stored*>(bytes.data()),
                                      std::ssize(bytes) / static_cast<int64_t>(sizeof(Stored))};
    };
    const auto heads = static_cast<int>(shape_.head_count), head_dim = static_cast<int>(shape_.head_dim);
    return {.q = rows_of(q),
            .k = view(cache_.k),
            .v = view(cache_.v),
            .merged = {.sums = {rows_of(softmax), rows_of(y)},
                       .y = rows_of(whole),
                       .seen = seen(),
                       .sinks = numbers_of_heads(shape_.sinks),
                       .heads = heads,
                       .head_dim = head_dim,
                       .heads_together = simt::heads_merged_together(heads, head_dim),
                       .arrivals = rows_of(arrivals),
                       .packed = launch.packed == nullptr ? simt::InputCodes{} : launch.packed->to()},
            .pages = {lists_.pages.data(), std::ssize(lists_.pages)},
            .tails = {lists_.tails.data(), std::ssize(lists_.tails)},
            .slopes = numbers_of_heads(shape_.slopes),
            .q_stride = static_cast<int>(shape_.query_size()),
            .kv_heads = static_cast<int>(shape_.kv_head_count),
            .page_size = static_cast<int>(shape_.page_size),
            .scale = 1.0F / std::sqrt(static_cast<float>(head_dim)),
            .softcap = shape_.softcap};
  }

  const AttentionTestShape& shape_;
  const PagedCache& cache_;
  const RowLists& lists_;
};

}  // namespace outrider
