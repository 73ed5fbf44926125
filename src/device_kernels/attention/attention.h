// SPDX-License-Identifier: Apache-2.0
// Attention of rows over the entries that they see, in the order of kernels/simd/attention.h. A running
// softmax takes blocks of 64 entries, counted from entry 0 of a row's own list, and values entry by entry.
// Every 256 entries it ends and is added to the sums of the chunks before.
#pragma once

#include "device_kernels/rows/cached_heads.h"
#include "device_kernels/rows/exponential.h"

namespace outrider::simt {

// A row's list of entries: entries [0, prefix_len) of its sequence, then the entries tails[tail] to
// tails[tail + tail_len - 1]. Entry e of the sequence lies in slot pages[page + e / page_size] * page_size +
// e % page_size.
struct RowEntries {
  static constexpr int kNumbers = 4;  // page, prefix_len, tail, tail_len
  int page, prefix_len, tail, tail_len;
};

// See outrider::AttentionArgs.
template <typename Cached>
struct AttentionArgs {
  Rows<const float> q;                    // [rows, q_stride]
  Rows<const typename Cached::Stored> k;  // [slots, kv_heads, head_dim in whole units]
  Rows<const typename Cached::Stored> v;
  Rows<float> y;      // [rows, heads, head_dim]
  List<int> entries;  // [rows, RowEntries::kNumbers]
  List<int> pages;
  List<int> tails;
  Weights<float> slopes;  // [heads]; null: distance does not matter
  Weights<float> sinks;   // [heads]; null: there are none
  int rows;
  int q_stride;
  int heads;
  int kv_heads;
  int head_dim;
  int page_size;
  int window;
  int chunk;
  float scale;
  float softcap;
};
using AttentionF32Args = AttentionArgs<CachedF32>;
using AttentionBf16Args = AttentionArgs<CachedBf16>;
using AttentionF16Args = AttentionArgs<CachedF16>;
using AttentionQ8Args = AttentionArgs<CachedQ8>;

inline constexpr int kBlockEntries = 64;
inline constexpr int kChunkEntries = 256;
inline constexpr int kBlockParts = kBlockEntries / kWarp;  // a lane has an entry of each part
inline constexpr int kWarpOutputs = 256;                   // numbers of a head that a warp adds up
inline constexpr int kHeadParts = kWarpOutputs / kWarp;

template <typename Cached>
SIMT RowEntries row_entries(const AttentionArgs<Cached>& args, int row) {
  const auto numbers = args.entries.from(static_cast<int64_t>(row) * RowEntries::kNumbers);
  return {numbers.load_one(0), numbers.load_one(1), numbers.load_one(2), numbers.load_one(3)};
}

// The entries of a block that a row attends to, and the softmax of all entries before them.
struct BlockState {
  int from, to;              // places in the row's list
  Ints places[kBlockParts];  // where the entries' heads begin in the cache
  Floats weights[kBlockParts];
  float largest, total, shrink;
};

template <typename Cached>
SIMT_PART void find_entries(const AttentionArgs<Cached>& args, const RowEntries& row, int kv_head,
                            BlockState& state) {
  const int units = (args.head_dim + kHeadUnit - 1) / kHeadUnit;
  SIMT_UNROLL
  for (int part = 0; part < kBlockParts; ++part) {
    const Ints e = lane_id() + Ints(state.from + part * kWarp);
    const Bools in = e < Ints(state.to), in_tail = in && e >= Ints(row.prefix_len);
    const Ints of_tail = args.tails.load_if(in_tail, e - Ints(row.prefix_len) + Ints(row.tail), 0);
    const Ints entry = select(in_tail, of_tail, e);
    const Ints page = args.pages.load_if(in, entry / Ints(args.page_size) + Ints(row.page), 0);
    const Ints slot = page * Ints(args.page_size) + entry % Ints(args.page_size);
    state.places[part] = (slot * Ints(args.kv_heads) + Ints(kv_head)) * Ints(units * Cached::kUnitNumbers);
    // Lanes without an entry read the block's first one, and do not count.
    state.places[part] = select(in, state.places[part], Ints(shuffle(state.places[0], 0)));
  }
}

// The products of a query with the keys of a part, in kSumChains chains over the numbers of the head.
template <typename Cached>
SIMT_PART Floats dot_keys(const AttentionArgs<Cached>& args, const Rows<const float>& q, Ints place) {
  Floats chains[kSumChains];
  SIMT_UNROLL
  for (int c = 0; c < kSumChains; ++c) chains[c] = Floats(0.0F);
  for (int d = 0; d < args.head_dim; d += kSumChains) {
    SIMT_UNROLL
    for (int c = 0; c < kSumChains; ++c) {
      const float number = d + c < args.head_dim ? q.load_one(d + c) : 0.0F;
      chains[c] = fma_rn(Floats(number), Cached::load(args.k, place, Ints(d + c)), chains[c]);
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

// The score of an entry: scaled, capped, and with the bias of its distance.
template <typename Cached>
SIMT_PART Floats finished_scores(const AttentionArgs<Cached>& args, Floats products, float slope,
                                 Ints from_end) {
  const bool caps = args.softcap > 0.0F;
  if (caps) products = softcap_of(products, args.scale, args.softcap);
  const Floats scores = caps ? products : mul_rn(products, Floats(args.scale));
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
      if (d >= args.head_dim) break;
      y[i] = fma_rn(Floats(weight), Cached::load(args.v, place, lane_id() + Ints(d)), y[i]);
    }
  }
}

// The sums of whole chunks, of which a lane has every 32nd output.
struct ChunkSums {
  float largest, total;
  Floats y[kHeadParts];
};

// Adds the sums of a chunk to the sums of the chunks before it, and clears them.
SIMT_PART void add_chunk(BlockState& chunk, Floats (&y)[kHeadParts], ChunkSums& whole) {
  const bool is_first = whole.total == 0.0F;
  const float largest = chunk.largest > whole.largest ? chunk.largest : whole.largest;
  const Floats kept = exp_of_negative(Floats(sub_rn(whole.largest, largest)));
  const Floats added = exp_of_negative(Floats(sub_rn(chunk.largest, largest)));
  SIMT_UNROLL
  for (int i = 0; i < kHeadParts; ++i) {
    whole.y[i] = is_first ? y[i] : fma_rn(whole.y[i], kept, mul_rn(y[i], added));
    y[i] = Floats(0.0F);
  }
  const float total = shuffle(fma_rn(Floats(whole.total), kept, mul_rn(Floats(chunk.total), added)), 0);
  whole.total = is_first ? chunk.total : total;
  whole.largest = is_first ? chunk.largest : largest;
  chunk.largest = -__builtin_huge_valf();
  chunk.total = 0.0F;
}

// A warp takes kWarpOutputs numbers of a query head of a row.
template <typename Cached>
SIMT void attention(const Block& block, const AttentionArgs<Cached>& args) {
  const int slices = (args.head_dim + kWarpOutputs - 1) / kWarpOutputs;
  const int slice = block.index() * block.warps() + block.warp();
  const int item = slice / slices, first_output = slice % slices * kWarpOutputs;
  if (item >= args.rows * args.heads) return;
  block.wait_for_previous();
  const int row = item / args.heads, head = item % args.heads;
  const RowEntries entries = row_entries(args, row);
  const int end = entries.prefix_len + entries.tail_len;
  int begin = args.window > 0 && end > args.window ? end - args.window : 0;
  if (args.chunk > 0 && begin < (end - 1) / args.chunk * args.chunk)
    begin = (end - 1) / args.chunk * args.chunk;
  const auto q = args.q.from(static_cast<int64_t>(row) * args.q_stride + head * args.head_dim);
  // A sink is an entry of the first chunk, even where a window leaves that chunk out.
  const bool has_sink = !args.sinks.is_null(), starts_late = begin >= kChunkEntries;
  const float sink = has_sink ? args.sinks.load_one(head) : -__builtin_huge_valf();
  BlockState state;
  ChunkSums whole;
  state.largest = starts_late ? -__builtin_huge_valf() : sink;
  state.total = has_sink && !starts_late ? 1.0F : 0.0F;
  whole.largest = starts_late ? sink : -__builtin_huge_valf();
  whole.total = has_sink && starts_late ? 1.0F : 0.0F;
  Floats y[kHeadParts];
  SIMT_UNROLL
  for (int i = 0; i < kHeadParts; ++i) y[i] = whole.y[i] = Floats(0.0F);
  for (int first = begin / kBlockEntries * kBlockEntries; first < end; first += kBlockEntries) {
    state.from = first > begin ? first : begin;
    state.to = first + kBlockEntries < end ? first + kBlockEntries : end;
    find_entries(args, entries, head / (args.heads / args.kv_heads), state);
    weigh_entries<Cached>(args, q, head, end, state);
    add_values(args, state, first_output, y);
    if ((first + kBlockEntries) % kChunkEntries == 0 || state.to == end) add_chunk(state, y, whole);
  }
  const float total = end == 0 ? 1.0F : whole.total;  // a row without entries gets zeros
  const auto out = args.y.from(static_cast<int64_t>(item) * args.head_dim);
  SIMT_UNROLL
  for (int i = 0; i < kHeadParts; ++i) {
    const Ints d = lane_id() + Ints(first_output + i * kWarp);
    out.store_if(d < Ints(args.head_dim), d, div_rn(whole.y[i], Floats(total)));
  }
}

}  // namespace outrider::simt
