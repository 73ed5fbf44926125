// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_kernels/rows/cached_heads.h"
#include "device_kernels/rows/rope.h"

namespace outrider::simt {

// Rows have queries, keys and values side by side. Queries and keys are rotated in place, and keys and values
// go to the rows' slots.
template <typename Cached>
struct RotateAndStoreArgs {
  RopeArgs rope;                         // of queries and keys; rotations null: nothing turns
  int kv_heads;                          // the last ones of `rope.heads`, and as many values behind them
  Rows<typename Cached::Stored> keys;    // [slots, kv_heads, head_dim in whole units]
  Rows<typename Cached::Stored> values;  // the same, or null: keys are values
  List<int> slots;                       // [rows]; -1: the row is stored nowhere
};
using RotateAndStoreF32Args = RotateAndStoreArgs<CachedF32>;
using RotateAndStoreBf16Args = RotateAndStoreArgs<CachedBf16>;
using RotateAndStoreF16Args = RotateAndStoreArgs<CachedF16>;
using RotateAndStoreE4m3Args = RotateAndStoreArgs<CachedE4m3>;
using RotateAndStoreQ8Args = RotateAndStoreArgs<CachedQ8>;

// A warp takes a query, key or value of a row.
template <typename Cached>
SIMT void rotate_and_store(const Block& block, const RotateAndStoreArgs<Cached>& args) {
  const RopeArgs& rope = args.rope;
  const int heads = rope.heads + (args.values.is_null() ? 0 : args.kv_heads);
  const int item = block.index() * block.warps() + block.warp();
  if (item >= rope.rows * heads) return;
  block.wait_for_previous();
  const int row = item / heads, head = item % heads, kv_head = head - (rope.heads - args.kv_heads);
  if (head < rope.heads && !rope.rotations.is_null()) {
    rotate_head(rope, row, head);
    block.sync_warp();
  }
  const int slot = kv_head >= 0 ? args.slots.load_one(row) : -1;
  if (slot < 0) return;
  const bool is_key = kv_head < args.kv_heads;
  const int64_t units = (rope.head_dim + kHeadUnit - 1) / kHeadUnit;
  const int64_t place = static_cast<int64_t>(slot) * args.kv_heads + kv_head % args.kv_heads;
  const auto& cache = is_key ? args.keys : args.values;
  const auto x = rope.x.from(static_cast<int64_t>(row) * rope.x_stride + head * rope.head_dim);
  store_head<Cached>(cache.from(place * units * Cached::kUnitNumbers), {x.data, x.count}, rope.head_dim);
}

}  // namespace outrider::simt
