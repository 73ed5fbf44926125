// SPDX-License-Identifier: Apache-2.0
// Rows of drafted trees, and the arguments of device attention, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "device_kernels/attention/attention.h"
#include "device_kernels/kernel_comparison.h"
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

template <typename Cached>
simt::AttentionArgs<Cached> device_args(const AttentionTestShape& shape, const PagedCache& cache,
                                        const RowLists& lists) {
  using Stored = typename Cached::Stored;
  const auto view = [](const std::vector<std::byte>& bytes) {
    return simt::Rows<const Stored>{reinterpret_cast<const Stored*>(bytes.data()),
                                    std::ssize(bytes) / static_cast<int64_t>(sizeof(Stored))};
  };
  return {.q = {},
          .k = view(cache.k),
          .v = view(cache.v),
          .y = {},
          .entries = {lists.entries.data(), std::ssize(lists.entries)},
          .pages = {lists.pages.data(), std::ssize(lists.pages)},
          .tails = {lists.tails.data(), std::ssize(lists.tails)},
          .slopes = shape.slopes.empty() ? simt::Weights<float>{} : weights_of_test(shape.slopes),
          .sinks = shape.sinks.empty() ? simt::Weights<float>{} : weights_of_test(shape.sinks),
          .rows = static_cast<int>(std::ssize(lists.entries) / simt::RowEntries::kNumbers),
          .q_stride = static_cast<int>(shape.query_size()),
          .heads = static_cast<int>(shape.head_count),
          .kv_heads = static_cast<int>(shape.kv_head_count),
          .head_dim = static_cast<int>(shape.head_dim),
          .page_size = static_cast<int>(shape.page_size),
          .window = static_cast<int>(shape.window),
          .chunk = static_cast<int>(shape.chunk),
          .scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim)),
          .softcap = shape.softcap};
}

}  // namespace outrider
