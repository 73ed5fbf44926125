// SPDX-License-Identifier: Apache-2.0
// One sequence's keys and values laid out in pages, for the attention tests.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/kernel_test_data.h"

namespace outrider {

struct AttentionTestShape {
  int64_t head_count = 6;
  int64_t kv_head_count = 2;
  int64_t head_dim = 40;
  int64_t page_size = 16;
  int64_t window = 0;
  DType type = DType::kF32;
  Floats slopes = {};  // [head_count], or empty
  float softcap = 0;
  Floats sinks = {};  // [head_count], or empty
  int64_t chunk = 0;

  int64_t query_size() const { return head_count * head_dim; }
  int64_t entry_size() const { return kv_head_count * head_dim; }
  int64_t row_bytes() const { return kv_head_count * cached_head_bytes(type, head_dim); }
};

inline constexpr DType kKvTypes[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kE4M3, DType::kQ8_0};

// Entries [count, kv_head_count, head_dim] in pages that lie in reversed order. All slots that hold no entry
// are NaN.
struct PagedCache {
  std::vector<std::byte> k;
  std::vector<std::byte> v;
  std::vector<int32_t> pages;

  PagedCache(const AttentionTestShape& shape, const Floats& keys, const Floats& values) {
    const int64_t count = static_cast<int64_t>(keys.size()) / shape.entry_size();
    const int64_t page_count = (count + shape.page_size - 1) / shape.page_size + 1;
    pages.resize(static_cast<size_t>(page_count));
    for (int64_t i = 0; i < page_count; ++i) pages[i] = static_cast<int32_t>(page_count - i);
    Floats nan(static_cast<size_t>(shape.entry_size()), std::numeric_limits<float>::quiet_NaN());
    const int64_t slots = (page_count + 1) * shape.page_size;
    k.resize(static_cast<size_t>(slots * shape.row_bytes()));
    v = k;
    for (int64_t slot = 0; slot < slots; ++slot) put(shape, slot, nan.data(), nan.data());
    for (int64_t e = 0; e < count; ++e) {
      const int64_t slot = pages[e / shape.page_size] * shape.page_size + e % shape.page_size;
      put(shape, slot, keys.data() + e * shape.entry_size(), values.data() + e * shape.entry_size());
    }
  }

 private:
  void put(const AttentionTestShape& shape, int64_t slot, const float* key, const float* value) {
    const auto store = [&](const float* x, std::vector<std::byte>& rows) {
      (*select_kernels("reference"))
          ->store_kv(
              {x, rows.data() + slot * shape.row_bytes(), shape.type, shape.kv_head_count, shape.head_dim});
    };
    store(key, k);
    store(value, v);
  }
};

// Rounds `numbers`, head vectors of shape.head_dim, as a cache of the type does.
inline Floats rounded_to_cache(const AttentionTestShape& shape, const Floats& numbers) {
  const auto heads = static_cast<int64_t>(numbers.size()) / shape.head_dim;
  const int64_t bytes = cached_head_bytes(shape.type, shape.head_dim);
  std::vector<std::byte> stored(static_cast<size_t>(heads * bytes));
  (*select_kernels("reference"))
      ->store_kv({numbers.data(), stored.data(), shape.type, heads, shape.head_dim});
  Floats rounded;
  Floats padded(static_cast<size_t>((shape.head_dim + 31) / 32 * 32));
  for (int64_t head = 0; head < heads; ++head) {
    dequantize_row(shape.type, stored.data() + head * bytes, padded.data(),
                   static_cast<int64_t>(padded.size()));
    rounded.insert(rounded.end(), padded.begin(), padded.begin() + shape.head_dim);
  }
  return rounded;
}

using AttentionKernel = std::function<void(const AttentionArgs&, Worker)>;

inline Floats attend(AttentionKernel kernel, const AttentionTestShape& shape, const PagedCache& cache,
                     const Floats& q, const std::vector<AttentionRow>& rows, int workers) {
  Floats y(q.size(), std::numeric_limits<float>::quiet_NaN());
  AttentionArgs args;
  args.q = q.data();
  args.q_stride = shape.query_size();
  args.kv_type = shape.type;
  args.k = cache.k.data();
  args.v = cache.v.data();
  args.y = y.data();
  args.rows = rows;
  args.head_count = shape.head_count;
  args.kv_head_count = shape.kv_head_count;
  args.head_dim = shape.head_dim;
  args.page_size = shape.page_size;
  args.window = shape.window;
  args.scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  args.slopes = shape.slopes.empty() ? nullptr : shape.slopes.data();
  args.softcap = shape.softcap;
  args.sinks = shape.sinks.empty() ? nullptr : shape.sinks.data();
  args.chunk = shape.chunk;
  run_shares(workers, [&](Worker worker) { kernel(args, worker); });
  return y;
}

}  // namespace outrider
