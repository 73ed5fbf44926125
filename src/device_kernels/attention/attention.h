// SPDX-License-Identifier: Apache-2.0
// Attention of rows over chunks of the entries that they see, in the order of kernels/simd/attention.h. A
// running softmax takes blocks of 64 entries, counted from entry 0 of a row's own list, and values entry by
// entry. Every 256 entries it ends, so that the chunks of one row occupy a whole device. The last warp of
// some heads of a row merges their chunks (merge_chunks.h).
#pragma once

#include "device_kernels/attention/chunks.h"
#include "device_kernels/attention/merge_chunks.h"
#include "device_kernels/rows/cached_heads.h"
#include "device_kernels/rows/exponential.h"

namespace outrider::simt {

// See outrider::AttentionArgs.
template <typename Cached>
struct AttentionArgs {
  Rows<const float> q;                    // [rows, q_stride]
  Rows<const typename Cached::Stored> k;  // [slots, kv_heads, head_dim in whole units]
  Rows<const typename Cached::Stored> v;
  MergedAttention merged;
  List<int> pages;
  List<int> tails;
  Weights<float> slopes;  // [heads]; null: distance does not matter
  int q_stride;
  int kv_heads;
  int page_size;
  float scale;
  float softcap;
};
using AttentionF32Args = AttentionArgs<CachedF32>;
using AttentionBf16Args = AttentionArgs<CachedBf16>;
using AttentionF16Args = AttentionArgs<CachedF16>;
using AttentionE4m3Args = AttentionArgs<CachedE4m3>;
using AttentionQ8Args = AttentionArgs<CachedQ8>;

inline constexpr int kBlockEntries = 64;
inline constexpr int kBlockParts = kBlockEntries / kWarp;  // a lane has an entry of each part
inline constexpr int kWarpOutputs = 256;                   // numbers of a head that a warp adds up
inline constexpr int kHeadParts = kWarpOutputs / kWarp;

// The entries of a block that a row attends to, and the softmax of the chunk's entries before them.
struct BlockState {
  int from, to;              // places in the row's list
  Ints places[kBlockParts];  // where the entries' heads begin in the cache
  Floats weights[kBlockParts];
  float largest, total, shrink;
};

// Where the heads of entries e of a row's list begin in the cache.
template <typename Cached>
SIMT Ints places_of_entries(const AttentionArgs<Cached>& args, const RowEntries& row, int kv_head, Ints e,
                            Bools in) {
  const int units = (args.merged.head_dim + kHeadUnit - 1) / kHeadUnit;
  const Bools in_tail = in && e >= Ints(row.prefix_len);
  const Ints of_tail = args.tails.load_if(in_tail, e - Ints(row.prefix_len) + Ints(row.tail), 0);
  const Ints entry = select(in_tail, of_tail, e);
  const Ints page = args.pages.load_if(in, entry / Ints(args.page_size) + Ints(row.page), 0);
  const Ints slot = page * Ints(args.page_size) + entry % Ints(args.page_size);
  return (slot * Ints(args.kv_heads) + Ints(kv_head)) * Ints(units * Cached::kUnitNumbers);
}

template <typename Cached>
SIMT_PART void find_entries(const AttentionArgs<Cached>& args, const RowEntries& row, int kv_head,
                            BlockState& state) {
  SIMT_UNROLL
  for (int part = 0; part < kBlockParts; ++part) {
    const Ints e = lane_id() + Ints(state.from + part * kWarp);
    const Bools in = e < Ints(state.to);
    state.places[part] = places_of_entries(args, row, kv_head, e, in);
    // Lanes without an entry read the block's first one, and do not count.
    state.places[part] = select(in, state.places[part], Ints(shuffle(state.places[0], 0)));
  }
}

// Numbers [d, d + kSumChains) of the keys of a part; d is a multiple of kSumChains. A lane loads 16 bytes of
// numbers at once, as its neighbours read elsewhere.
template <typename Cached>
SIMT void load_keys(const Rows<const typename Cached::Stored>& k, Ints place, int d,
                    Floats (&keys)[kSumChains]) {
  if constexpr (requires(Ints bits) { Cached::widen(bits); }) {
    const Rows<const int> pairs = {reinterpret_cast<const int*>(k.data), k.count / 2};
    SIMT_UNROLL
    for (int first = 0; first < kSumChains; first += 8) {
      Ints words[4];
      pairs.load4((place + Ints(d + first)) >> Ints(1), words);
      SIMT_UNROLL
      for (int i = 0; i < 8; ++i)
        keys[first + i] = Cached::widen((words[i / 2] >> Ints(i % 2 * 16)) & Ints(0xFFFF));
    }
  } else if constexpr (requires(Ints code) { Cached::widen_byte(code); }) {
    const Rows<const int> fours = {reinterpret_cast<const int*>(k.data), k.count / 4};
    Ints words[4];
    fours.load4((place + Ints(d)) >> Ints(2), words);
    SIMT_UNROLL
    for (int c = 0; c < kSumChains; ++c)
      keys[c] = Cached::widen_byte((words[c / 4] << Ints(24 - c % 4 * 8)) >> Ints(24));
  } else {
    SIMT_UNROLL
    for (int c = 0; c < kSumChains; ++c) keys[c] = Cached::load(k, place, Ints(d + c));
  }
}

// The products of a query with the keys of a part, in kSumChains chains over the numbers of the head.
template <typename Cached>
SIMT_PART Floats dot_keys(const AttentionArgs<Cached>& args, const Rows<const float>& q, Ints place) {
  Floats chains[kSumChains];
  SIMT_UNROLL
  for (int c = 0; c < kSumChains; ++c) chains[c] = Floats(0.0F);
  for (int d = 0; d < args.merged.head_dim; d += kSumChains) {
    Floats keys[kSumChains];
    load_keys<Cached>(args.k, place, d, keys);
    SIMT_UNROLL
    for (int c = 0; c < kSumChains; ++c) {
      const float number = d + c < args.merged.head_dim ? q.load_one(d + c) : 0.0F;
      chains[c] = fma_rn(Floats(number), keys[c], chains[c]);
    }
  }
  SIMT_UNROLL
  for (int apart = kSumChains / 2; apart > 0; apart /= 2) {
    SIMT_UNROLL
    for (int c = 0; c < kSumChains / 2; ++c)
      if (c < apart) chains[c] = add_rn(chains[c], chains[c + apart]);
  }
  return chains[0];
}

// Products of a query and keys, scaled and capped.
template <typename Cached>
SIMT Floats scaled_scores(const AttentionArgs<Cached>& args, Floats products) {
  if (args.softcap > 0.0F) return softcap_of(products, args.scale, args.softcap);
  return mul_rn(products, Floats(args.scale));
}

// The score of an entry: scaled, capped, and with the bias of its distance.
template <typename Cached>
SIMT_PART Floats finished_scores(const AttentionArgs<Cached>& args, Floats products, float slope,
                                 Ints from_end) {
  const Floats scores = scaled_scores(args, products);
  if (slope == 0.0F) return scores;
  return add_rn(scores, mul_rn(Floats(slope), to_float(from_end)));
}

// The sum of the block's weights in kSumChains chains.
SIMT_PART float sum_of_weights(const Floats (&weights)[kBlockParts]) {
  Floats chain = weights[0];
  SIMT_UNROLL
  for (int first = kSumChains; first < kBlockEntries; first += kSumChains)
    chain = add_rn(chain, shuffle_xor(weights[first / kWarp], first % kWarp));
  return shuffle(sum_lanes(chain, kSumChains), 0);
}

template <typename Cached>
SIMT_PART void weigh_entries(const AttentionArgs<Cached>& args, const Rows<const float>& q, int head,
                             int list_end, BlockState& state) {
  const float lowest = -__builtin_huge_valf();
  const float slope = args.slopes.is_null() ? 0.0F : args.slopes.load_one(head);
  Floats scores[kBlockParts], block_largest(lowest);
  SIMT_UNROLL
  for (int part = 0; part < kBlockParts; ++part) {
    const Ints e = lane_id() + Ints(state.from + part * kWarp);
    const Floats products = dot_keys<Cached>(args, q, state.places[part]);
    const Floats finished = finished_scores(args, products, slope, e - Ints(list_end - 1));
    scores[part] = select(e < Ints(state.to), finished, Floats(lowest));
    block_largest = max_of(block_largest, scores[part]);
  }
  const float candidate = shuffle(max_lanes(block_largest, kWarp), 0);
  const float largest = candidate > state.largest ? candidate : state.largest;
  state.shrink = shuffle(exp_of_negative(Floats(sub_rn(state.largest, largest))), 0);
  state.largest = largest;
  SIMT_UNROLL
  for (int part = 0; part < kBlockParts; ++part)
    state.weights[part] = exp_of_negative(sub_rn(scores[part], Floats(largest)));
  state.total = fma_rn(state.total, state.shrink, sum_of_weights(state.weights));
}

// Adds the values of the block's entries to the outputs from `first` on, of which a lane has every 32nd.
template <typename Cached>
SIMT_PART void add_values(const AttentionArgs<Cached>& args, const BlockState& state, int first,
                          Floats (&y)[kHeadParts]) {
  SIMT_UNROLL
  for (int i = 0; i < kHeadParts; ++i) y[i] = mul_rn(y[i], Floats(state.shrink));
  for (int e = 0; e < state.to - state.from; ++e) {
    const bool is_lower = e < kWarp;
    const float weight = shuffle(is_lower ? state.weights[0] : state.weights[1], e % kWarp);
    const Ints place(shuffle(is_lower ? state.places[0] : state.places[1], e % kWarp));
    SIMT_UNROLL
    for (int i = 0; i < kHeadParts; ++i) {
      const int d = first + i * kWarp;
      if (d >= args.merged.head_dim) break;
      y[i] = fma_rn(Floats(weight), Cached::load(args.v, place, lane_id() + Ints(d)), y[i]);
    }
  }
}

// A warp computes kWarpOutputs outputs of a query head of a row, from `first_output` on, over a chunk.
struct ChunkItem {
  int row, head, chunk, first_output;
};

SIMT int slices_of(int head_dim) { return (head_dim + kWarpOutputs - 1) / kWarpOutputs; }

// Neighbours have the same entries: first the heads of a group, then rows, such as the nodes of a tree.
template <typename Cached>
SIMT ChunkItem chunk_item(const AttentionArgs<Cached>& args, int chunks, int index) {
  const int slices = slices_of(args.merged.head_dim), group = args.merged.heads / args.kv_heads;
  const int of_group = index / slices, of_row = of_group / group, of_chunk = of_row / args.merged.seen.rows;
  return {.row = of_row % args.merged.seen.rows,
          .head = of_chunk / chunks * group + of_group % group,
          .chunk = of_chunk % chunks,
          .first_output = index % slices * kWarpOutputs};
}

template <typename Cached>
SIMT void store_chunk(const AttentionArgs<Cached>& args, const ChunkItem& item, const BlockState& state,
                      const Floats (&y)[kHeadParts]) {
  const int64_t place =
      (static_cast<int64_t>(item.chunk) * args.merged.seen.rows + item.row) * args.merged.heads + item.head;
  const auto out = args.merged.sums.y.from(place * args.merged.head_dim);
  SIMT_UNROLL
  for (int i = 0; i < kHeadParts; ++i) {
    const Ints d = lane_id() + Ints(item.first_output + i * kWarp);
    out.store_if(d < Ints(args.merged.head_dim), d, y[i]);
  }
  if (item.first_output > 0) return;
  const Ints lane = lane_id();
  const Floats number = select(lane == Ints(0), Floats(state.largest), Floats(state.total));
  args.merged.sums.softmax.from(place * kSoftmaxNumbers).store_if(lane < Ints(kSoftmaxNumbers), lane, number);
}

template <typename Cached>
SIMT void attend_chunk(const AttentionArgs<Cached>& args, const ChunkItem& item, const RowSpan& span) {
  const RowEntries entries = row_entries(args.merged.seen, item.row);
  const auto q =
      args.q.from(static_cast<int64_t>(item.row) * args.q_stride + item.head * args.merged.head_dim);
  const int chunk_begin = (span.begin / kChunkEntries + item.chunk) * kChunkEntries;
  const int begin = chunk_begin > span.begin ? chunk_begin : span.begin;
  const int end = chunk_begin + kChunkEntries < span.end ? chunk_begin + kChunkEntries : span.end;
  const bool has_sink = !args.merged.sinks.is_null() && chunk_begin == 0;
  BlockState state;
  state.largest = has_sink ? args.merged.sinks.load_one(item.head) : -__builtin_huge_valf();
  state.total = has_sink ? 1.0F : 0.0F;
  Floats y[kHeadParts];
  SIMT_UNROLL
  for (int i = 0; i < kHeadParts; ++i) y[i] = Floats(0.0F);
  for (int first = begin / kBlockEntries * kBlockEntries; first < end; first += kBlockEntries) {
    state.from = first > begin ? first : begin;
    state.to = first + kBlockEntries < end ? first + kBlockEntries : end;
    find_entries(args, entries, item.head / (args.merged.heads / args.kv_heads), state);
    weigh_entries<Cached>(args, q, item.head, span.end, state);
    add_values(args, state, item.first_output, y);
  }
  store_chunk(args, item, state, y);
}

// Any number of warps takes all items, because lists that were recorded once are run for texts of any length.
template <typename Cached>
SIMT void attention(const Block& block, const AttentionArgs<Cached>& args) {
  block.wait_for_previous();
  const MergedAttention& merged = args.merged;
  const int first = block.index() * block.warps() + block.warp(), warps = block.count() * block.warps();
  const int longest = most_chunks(merged.seen), chunks = longest > 1 ? longest : 1;
  const int slices = slices_of(merged.head_dim);
  const int items = chunks * merged.seen.rows * merged.heads * slices;
  for (int i = first; i < items; i += warps) {
    const ChunkItem item = chunk_item(args, chunks, i);
    const RowSpan span = row_span(merged.seen, item.row);
    const int of_row = span.chunks() > 1 ? span.chunks() : 1;  // a row without entries is zeros
    if (item.chunk >= of_row) continue;
    if (item.chunk < span.chunks()) attend_chunk(args, item, span);
    merge_when_complete(block, merged, item.row, item.head, of_row * slices);
  }
  pack_padding(merged, first, warps);
}

}  // namespace outrider::simt
