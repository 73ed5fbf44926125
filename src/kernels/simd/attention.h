// SPDX-License-Identifier: Apache-2.0
// Attention with the running softmax of FlashAttention, in blocks of kBlock entries counted from entry 0 of a
// row's own list. Blocks, and so all bits, depend on the row's length and window only: not on pages, not on
// where its prefix ends, not on which rows and heads are computed together to reuse the cache.
#pragma once

#include "kernels/simd/cached_heads.h"
#include "kernels/simd/row_ops.h"

namespace outrider::simd {

inline constexpr int kBlock = 64;            // entries; a multiple of every vector
inline constexpr int kRun = 64;              // (row, head) pairs that go through the cache together
inline constexpr int64_t kWidestHead = 256;  // numbers; heads up to here are widened to f32 once per block

// The entries of one block that a row attends to, as offsets in bytes of one head's vectors in k and v.
struct BlockEntries {
  int64_t offsets[kBlock];
  int count;
};

// ALiBi within one block: entry i of the block has the bias slope * (first + i).
struct DistanceBias {
  float slope;  // 0: none
  float first;  // position of the block's first entry less the row's own
};

struct RunningSoftmax {
  float largest;
  float total;
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

// scores[i] = q . keys[i] for kCount entries side by side; each sum runs alone, in vectors along head_dim.
// The bits do not depend on kCount.
template <typename V, typename Cached, int kCount>
void dot_entries(const float* q, const uint8_t* keys, const int64_t* offsets, int64_t head_dim,
                 float* scores) {
  typename V::Floats sums[kCount];
  for (auto& sum : sums) sum = V::all(0);
  int64_t d = 0;
  for (; d + V::kLanes <= head_dim; d += V::kLanes) {
    const auto part = V::load(q + d);
    for (int i = 0; i < kCount; ++i) {
      sums[i] = V::multiply_add(part, Cached::load(keys + offsets[i], d), sums[i]);
    }
  }
  if (d < head_dim) {
    const auto part = V::load_first(q + d, head_dim - d);
    for (int i = 0; i < kCount; ++i) {
      sums[i] = V::multiply_add(part, Cached::load(keys + offsets[i], d), sums[i]);
    }
  }
  if constexpr (kCount == V::kLanes) {
    V::store(scores, V::sums(sums));
  } else {
    for (int i = 0; i < kCount; ++i) scores[i] = V::sum(sums[i]);
  }
}

// The head begins at number `head` of a row; its first entry is that far before the end of the row's list.
template <typename V>
DistanceBias bias_of(const AttentionArgs& args, int64_t head, int64_t from_end) {
  if (args.slopes == nullptr) return {0, 0};
  return {args.slopes[head / args.head_dim], static_cast<float>(from_end + 1)};
}

// The softmax of no entry, and of the head's sink if there is one. The head begins at number `head` of a row.
template <typename V>
RunningSoftmax first_state(const AttentionArgs& args, int64_t head) {
  if (args.sinks == nullptr) return {-__builtin_huge_valf(), 0};
  return {args.sinks[head / args.head_dim], 1};
}

// Scales and caps scores and adds the bias. Returns the factor that is left to apply.
template <typename V>
float finish_scores(const AttentionArgs& args, float* scores, int count, DistanceBias bias) {
  float scale = args.scale;
  if (args.softcap > 0) {
    softcap<V>(scores, count, scale, args.softcap);
    scale = 1;
  }
  if (bias.slope == 0) return scale;
  for (int i = 0; i < count; ++i)
    scores[i] = scores[i] * scale + bias.slope * (bias.first + static_cast<float>(i));
  return 1;
}

// Turns scores into weights exp(score - largest) in place and returns by how much older sums shrink.
template <typename V>
float softmax_block(float* scores, int count, float scale, RunningSoftmax& state) {
  const int vectors = (count + V::kLanes - 1) / V::kLanes;
  for (int i = count; i < vectors * V::kLanes; ++i) scores[i] = -__builtin_huge_valf();
  auto block_largest = V::all(-__builtin_huge_valf());
  for (int i = 0; i < vectors; ++i) {
    const auto scaled = V::mul(V::load(scores + i * V::kLanes), V::all(scale));
    V::store(scores + i * V::kLanes, scaled);
    block_largest = V::max(block_largest, scaled);
  }
  const float candidate = V::largest(block_largest);
  const float largest = candidate > state.largest ? candidate : state.largest;
  auto total = V::all(0);
  for (int i = 0; i < vectors; ++i) {
    const auto weight = exp<V>(V::sub(V::load(scores + i * V::kLanes), V::all(largest)));
    V::store(scores + i * V::kLanes, weight);
    total = V::add(total, weight);
  }
  alignas(64) float shrink[V::kLanes];
  V::store(shrink, exp<V>(V::sub(V::all(state.largest), V::all(largest))));
  state = {largest, __builtin_fmaf(state.total, shrink[0], V::sum(total))};
  return shrink[0];
}

// Numbers [d, d + kVectors * V::kLanes) of y = y * shrink + sum_i weights[i] * values[i]; the last `left`
// lanes wide.
template <typename V, typename Cached, int kVectors>
void add_values(const BlockEntries& block, const uint8_t* values, const float* weights, float shrink,
                float* y, Range part) {
  typename V::Floats sums[kVectors];
  const int64_t left = part.end - part.begin - (kVectors - 1) * V::kLanes;
  for (int v = 0; v < kVectors; ++v) {
    const auto old = V::load_first(y + part.begin + v * V::kLanes, v + 1 < kVectors ? V::kLanes : left);
    sums[v] = V::mul(old, V::all(shrink));
  }
  for (int i = 0; i < block.count; ++i) {
    const auto weight = V::all(weights[i]);
    for (int v = 0; v < kVectors; ++v) {
      const auto value = Cached::load(values + block.offsets[i], part.begin + v * V::kLanes);
      sums[v] = V::multiply_add(weight, value, sums[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    V::store_first(y + part.begin + v * V::kLanes, sums[v], v + 1 < kVectors ? V::kLanes : left);
  }
}

template <typename V, typename Cached>
void attend_block(const AttentionArgs& args, const BlockEntries& block, const void* k, const void* v,
                  const float* q, float* y, DistanceBias bias, RunningSoftmax& state) {
  alignas(64) float scores[kBlock];
  constexpr int kTogether = 4;
  const auto* keys = static_cast<const uint8_t*>(k);
  const auto* values = static_cast<const uint8_t*>(v);
  int i = 0;
  for (; i + V::kLanes <= block.count; i += V::kLanes) {
    dot_entries<V, Cached, V::kLanes>(q, keys, block.offsets + i, args.head_dim, scores + i);
  }
  for (; i + kTogether <= block.count; i += kTogether) {
    dot_entries<V, Cached, kTogether>(q, keys, block.offsets + i, args.head_dim, scores + i);
  }
  for (; i < block.count; ++i) {
    dot_entries<V, Cached, 1>(q, keys, block.offsets + i, args.head_dim, scores + i);
  }
  const float scale = finish_scores<V>(args, scores, block.count, bias);
  const float shrink = softmax_block<V>(scores, block.count, scale, state);
  int64_t d = 0;
  for (; d + kTogether * V::kLanes <= args.head_dim; d += kTogether * V::kLanes) {
    add_values<V, Cached, kTogether>(block, values, scores, shrink, y, {d, d + kTogether * V::kLanes});
  }
  for (; d < args.head_dim; d += V::kLanes) {
    const int64_t end = args.head_dim < d + V::kLanes ? args.head_dim : d + V::kLanes;
    add_values<V, Cached, 1>(block, values, scores, shrink, y, {d, end});
  }
}

// A block's keys and values as f32, for all heads and rows that see the same entries.
struct WideBlock {
  alignas(64) float keys[kBlock * kWidestHead];
  alignas(64) float values[kBlock * kWidestHead];
  BlockEntries entries;  // within either
};

template <typename V, typename Cached>
void widen_heads(const BlockEntries& block, const uint8_t* cache, int64_t padded, float* out) {
  for (int i = 0; i < block.count; ++i, out += padded) {
    for (int64_t d = 0; d < padded; d += V::kLanes)
      V::store(out + d, Cached::load(cache + block.offsets[i], d));
  }
}

template <typename V, typename Cached>
void widen_block(const AttentionArgs& args, const BlockEntries& block, WideBlock& wide) {
  constexpr int64_t kPadding = CachedQ8<V>::kBlock;
  const int64_t padded = (args.head_dim + kPadding - 1) / kPadding * kPadding;
  widen_heads<V, Cached>(block, reinterpret_cast<const uint8_t*>(args.k), padded, wide.keys);
  widen_heads<V, Cached>(block, reinterpret_cast<const uint8_t*>(args.v), padded, wide.values);
  wide.entries.count = block.count;
  for (int i = 0; i < block.count; ++i)
    wide.entries.offsets[i] = i * padded * static_cast<int64_t>(sizeof(float));
}

template <typename V>
bool same_entries(const BlockEntries& a, const BlockEntries& b) {
  return a.count == b.count && __builtin_memcmp(a.offsets, b.offsets, a.count * sizeof(a.offsets[0])) == 0;
}

// Items of one key/value head. They pass block by block over the cache, so that each finds the entries that
// the previous one read in the nearest caches.
template <typename V, typename Cached, bool kWiden>
void attend_run(const AttentionShare& share, int64_t kv_head, Range items) {
  const AttentionArgs& args = *share.args;
  WideBlock wide;
  const int64_t group = args.head_count / args.kv_head_count;
  RunningSoftmax states[kRun];
  const auto row_of = [&](int64_t item) { return item / group % share.row_count; };
  const auto head_of = [&](int64_t item) { return (kv_head * group + item % group) * args.head_dim; };
  const auto y_of = [&](int64_t item) {
    return args.y + row_of(item) * args.head_count * args.head_dim + head_of(item);
  };
  int64_t longest = 0;
  for (int64_t item = items.begin; item < items.end; ++item) {
    states[item - items.begin] = first_state<V>(args, head_of(item));
    float* y = y_of(item);
    for (int64_t d = 0; d < args.head_dim; ++d) y[d] = 0;
    const int64_t end = entries_of<V>(args, share.rows[row_of(item)]).end;
    longest = end > longest ? end : longest;
  }
  for (int64_t begin = 0; begin < longest; begin += kBlock) {
    BlockEntries block;
    block.count = 0;
    int64_t row_of_block = -1;
    for (int64_t item = items.begin; item < items.end; ++item) {
      const int64_t row = row_of(item);
      const Range all = entries_of<V>(args, share.rows[row]);
      const Range entries = {all.begin > begin ? all.begin : begin,
                             all.end < begin + kBlock ? all.end : begin + kBlock};
      if (entries.begin >= entries.end) continue;
      if (row != row_of_block) {
        BlockEntries next;
        find_entries<V>(args, share.rows[row], kv_head, entries, next);
        if (kWiden && !same_entries<V>(block, next)) widen_block<V, Cached>(args, next, wide);
        block = next;
      }
      row_of_block = row;
      const float* q = args.q + row * args.q_stride + head_of(item);
      const DistanceBias bias = bias_of<V>(args, head_of(item), entries.begin - all.end);
      RunningSoftmax& state = states[item - items.begin];
      if constexpr (kWiden) {
        attend_block<V, CachedF32<V>>(args, wide.entries, wide.keys, wide.values, q, y_of(item), bias, state);
      } else {
        attend_block<V, Cached>(args, block, args.k, args.v, q, y_of(item), bias, state);
      }
    }
  }
  for (int64_t item = items.begin; item < items.end; ++item) {
    float* y = y_of(item);
    for (int64_t d = 0; d < args.head_dim; ++d) y[d] /= states[item - items.begin].total;
  }
}

template <typename V, typename Cached, bool kWiden = true>
void attend_all(const AttentionShare& share) {
  const int64_t items_of_kv_head = share.row_count * (share.args->head_count / share.args->kv_head_count);
  for (int64_t begin = share.items.begin; begin < share.items.end;) {
    const int64_t kv_head = begin / items_of_kv_head;
    int64_t end = (kv_head + 1) * items_of_kv_head;
    if (end > share.items.end) end = share.items.end;
    if (end > begin + kRun) end = begin + kRun;
    attend_run<V, Cached, kWiden>(share, kv_head, {begin, end});
    begin = end;
  }
}

template <typename V>
void attention(const AttentionShare& share) {
  const bool narrow = share.args->head_dim <= kWidestHead;
  switch (share.args->kv_type) {
    case DType::kBF16:
      if (!narrow) return attend_all<V, CachedBf16<V>, false>(share);
      return attend_all<V, CachedBf16<V>>(share);
    case DType::kF16:
      if (!narrow) return attend_all<V, CachedF16<V>, false>(share);
      return attend_all<V, CachedF16<V>>(share);
    case DType::kQ8_0:
      if (!narrow) return attend_all<V, CachedQ8<V>, false>(share);
      return attend_all<V, CachedQ8<V>>(share);
    default:
      return attend_all<V, CachedF32<V>, false>(share);
  }
}

}  // namespace outrider::simd
