// SPDX-License-Identifier: Apache-2.0
// Where the cached heads of a block of entries are.
#pragma once

#include "kernels/isa_ops.h"

namespace outrider::simd {

inline constexpr int kBlock = 64;  // entries; a multiple of every vector

// The entries of one block that a row attends to, as offsets in bytes of one head's vectors in k and v.
struct BlockEntries {
  int64_t offsets[kBlock];
  int count;
};

// This is a template, as all functions here, so that each instruction set has its own copy.
template <typename V>
Range entries_of(const AttentionArgs& args, const AttentionRow& row) {
  const int64_t end = static_cast<int64_t>(row.prefix_len) + row.tail_len;
  const int64_t begin = args.window > 0 && end > args.window ? end - args.window : 0;
  const int64_t chunk = args.chunk > 0 ? (end - 1) / args.chunk * args.chunk : 0;
  return {begin > chunk ? begin : chunk, end};
}

template <typename V>
void find_entries(const AttentionArgs& args, const AttentionRow& row, int64_t kv_head, Range entries,
                  BlockEntries& block) {
  const int64_t head_bytes = cached_head_bytes(args.kv_type, args.head_dim);
  const int64_t entry_bytes = args.kv_head_count * head_bytes;
  block.count = static_cast<int>(entries.end - entries.begin);
  int64_t* offset = block.offsets;
  int64_t e = entries.begin;
  const int64_t in_order = entries.end < row.prefix_len ? entries.end : row.prefix_len;
  while (e < in_order) {  // page by page
    const int64_t page = e / args.page_size;
    const int64_t page_end = (page + 1) * args.page_size < in_order ? (page + 1) * args.page_size : in_order;
    int64_t at = (row.pages[page] - page) * args.page_size + e;  // slot of entry e
    for (at = at * entry_bytes + kv_head * head_bytes; e < page_end; ++e, at += entry_bytes) *offset++ = at;
  }
  for (; e < entries.end; ++e) {
    const int64_t entry = row.tail[e - row.prefix_len];
    const int64_t slot = row.pages[entry / args.page_size] * args.page_size + entry % args.page_size;
    *offset++ = slot * entry_bytes + kv_head * head_bytes;
  }
}

// Heads of the cache that are read soon. They are fetched into the second-level cache while others are
// computed: in every pass a sequence's cache comes from memory, and requests of the first level are too few
// to hide that time.
template <typename V>
struct ComingHeads {
  const uint8_t* cache;
  const BlockEntries* entries;  // null: none
  int64_t bytes;                // of a head

  void fetch(int begin, int end) const {
    if (entries == nullptr) return;
    if (end > entries->count) end = entries->count;
    for (int i = begin; i < end; ++i) {
      const uint8_t* const head = cache + entries->offsets[i];
      for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(head + at, 0, 2);
    }
  }
};

}  // namespace outrider::simd
