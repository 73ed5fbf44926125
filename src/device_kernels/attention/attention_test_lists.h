// SPDX-License-Identifier: Apache-2.0
// Rows of drafted trees, and the launches of device attention, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "device_kernels/attention/attention.h"
#include "device_kernels/attention/merge_chunks.h"
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

// The launches of attention over lists that may change in between. Scratch has just enough numbers, and NaN
// at the beginning.
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
    softmax.assign(heads * simt::kSoftmaxNumbers, std::nanf(""));
    y.assign(heads * static_cast<size_t>(shape.head_dim), std::nanf(""));
  }

  // blocks: 0: a warp for each item
  simt::EmulationReport attend(KernelName kernel, const Floats& q, int blocks = 0,
                               const EmulationOptions& options = {}) {
    const auto args = attention_args(q);
    constexpr int kWarps = 4;
    const auto items =
        static_cast<int>(y.size() / static_cast<size_t>(args.head_dim)) * simt::slices_of(args.head_dim);
    return emulate(
        kernel, args,
        {.blocks = blocks > 0 ? blocks : std::max((items + kWarps - 1) / kWarps, 1), .warps = kWarps},
        options);
  }
  // packed: where outputs become codes, too; null: nowhere.
  simt::EmulationReport merge(Floats& whole, const EmulationOptions& options = {},
                              PackedInputs* packed = nullptr) {
    const simt::MergeChunksArgs args{.sums = {rows_of(softmax), rows_of(y)},
                                     .y = rows_of(whole),
                                     .seen = seen(),
                                     .sinks = numbers_of_heads(shape_.sinks),
                                     .heads = static_cast<int>(shape_.head_count),
                                     .head_dim = static_cast<int>(shape_.head_dim),
                                     .packed = packed == nullptr ? simt::InputCodes{} : packed->to()};
    const auto parts = static_cast<int>((shape_.query_size() + simt::kWarp - 1) / simt::kWarp);
    const int rows = packed == nullptr ? row_count() : packed->padded;
    return emulate(KernelName::kMergeChunks, args, {.blocks = (rows * parts + 1) / 2, .warps = 2}, options);
  }

  Floats softmax, y;  // of chunks

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
  simt::AttentionArgs<Cached> attention_args(const Floats& q) {
    const auto view = [](const std::vector<std::byte>& bytes) {
      return simt::Rows<const Stored>{reinterpret_cast<const Stored*>(bytes.data()),
                                      std::ssize(bytes) / static_cast<int64_t>(sizeof(Stored))};
    };
    return {.q = rows_of(q),
            .k = view(cache_.k),
            .v = view(cache_.v),
            .sums = {rows_of(softmax), rows_of(y)},
            .seen = seen(),
            .pages = {lists_.pages.data(), std::ssize(lists_.pages)},
            .tails = {lists_.tails.data(), std::ssize(lists_.tails)},
            .slopes = numbers_of_heads(shape_.slopes),
            .sinks = numbers_of_heads(shape_.sinks),
            .q_stride = static_cast<int>(shape_.query_size()),
            .heads = static_cast<int>(shape_.head_count),
            .kv_heads = static_cast<int>(shape_.kv_head_count),
            .head_dim = static_cast<int>(shape_.head_dim),
            .page_size = static_cast<int>(shape_.page_size),
            .scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_dim)),
            .softcap = shape_.softcap};
  }

  const AttentionTestShape& shape_;
  const PagedCache& cache_;
  const RowLists& lists_;
};

}  // namespace outrider
