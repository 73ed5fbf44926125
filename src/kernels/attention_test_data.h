// SPDX-License-Identifier: Apache-2.0
// One sequence's keys and values laid out in pages, for the attention tests.
#pragma once

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/kernel_test_data.h"

namespace outrider {

struct AttentionShape {
  int64_t head_count = 6;
  int64_t kv_head_count = 2;
  int64_t head_dim = 40;
  int64_t page_size = 16;
  int64_t window = 0;

  int64_t query_size() const { return head_count * head_dim; }
  int64_t entry_size() const { return kv_head_count * head_dim; }
};

// Entries [count, kv_head_count, head_dim] in pages that lie in reversed order. All slots that hold no entry
// are NaN.
struct PagedCache {
  Floats k;
  Floats v;
  std::vector<int32_t> pages;

  PagedCache(const AttentionShape& shape, const Floats& keys, const Floats& values) {
    const int64_t count = static_cast<int64_t>(keys.size()) / shape.entry_size();
    const int64_t page_count = (count + shape.page_size - 1) / shape.page_size + 1;
    pages.resize(static_cast<size_t>(page_count));
    for (int64_t i = 0; i < page_count; ++i) pages[i] = static_cast<int32_t>(page_count - i);
    const auto slots = static_cast<size_t>((page_count + 1) * shape.page_size * shape.entry_size());
    k.assign(slots, std::numeric_limits<float>::quiet_NaN());
    v = k;
    for (int64_t e = 0; e < count; ++e) {
      const int64_t slot = pages[e / shape.page_size] * shape.page_size + e % shape.page_size;
      for (int64_t i = 0; i < shape.entry_size(); ++i) {
        k[slot * shape.entry_size() + i] = keys[e * shape.entry_size() + i];
        v[slot * shape.entry_size() + i] = values[e * shape.entry_size() + i];
      }
    }
  }
};

using AttentionKernel = void (*)(const AttentionArgs& args, Worker worker);

inline Floats attend(AttentionKernel kernel, const AttentionShape& shape, const PagedCache& cache,
                     const Floats& q, const std::vector<AttentionRow>& rows, int workers) {
  Floats y(q.size(), std::numeric_limits<float>::quiet_NaN());
  AttentionArgs args;
  args.q = q.data();
  args.k = cache.k.data();
  args.v = cache.v.data();
  args.y = y.data();
  args.rows = rows;
  args.head_count = shape.head_count;
  args.kv_head_count = shape.kv_head_count;
  args.head_dim = shape.head_dim;
  args.page_size = shape.page_size;
  args.window = shape.window;
  run_shares(workers, [&](Worker worker) { kernel(args, worker); });
  return y;
}

}  // namespace outrider
