// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores, of the profile cuda_tc. Queries, weights and cached numbers are 16-bit numbers.
// A running softmax takes blocks of 32 entries, counted from entry 0 of a row's own list, and ends every 256
// entries as in attention.h. A row's bits depend on its own list alone: the rows of a tile share the loads of
// blocks that all of them see, and any other block is computed for one row after another.
#pragma once

#include "device_kernels/attention/query_tiles.h"
#include "device_kernels/products/tensor_products.h"

namespace outrider::simt {

inline constexpr int kTensorEntries = 32;                // of a block
inline constexpr int kEntryTiles = kTensorEntries / 8;   // of scores
inline constexpr int kValueTiles = kTensorEntries / 16;  // of values
inline constexpr int kOutputUnits = kTileOutputs / kHeadUnit;
inline constexpr int kQueryWords = 256;  // of a unit of a tile's queries
inline constexpr int kTileWarps = 2;     // of a block

// The type that the numbers of a cache have on tensor cores.
template <typename Cached>
struct CachedOnTensorCores {
  using Type = TensorBf16;
};
template <>
struct CachedOnTensorCores<CachedF16> {
  using Type = TensorF16;
};
template <typename Cached>
using TensorTypeOf = typename CachedOnTensorCores<Cached>::Type;

// Shared memory of a warp: the queries of a tile, [unit][2][lane][4 words] as mma_bf16() has them.
SIMT int query_bytes(int head_dim) {
  return (head_dim + kHeadUnit - 1) / kHeadUnit * kQueryWords * static_cast<int>(sizeof(int));
}

// The bf16 numbers of two neighbouring codes of E4M3, which are the low bytes of a word; NaN stays NaN.
SIMT Ints pair_of_codes(Ints word) {
  const Ints codes = ((word & Ints(0xFF)) << Ints(8)) | ((word & Ints(0xFF00)) << Ints(16));
  const Ints is_nan = (((codes & Ints(0x7F007F00)) + Ints(0x01000100)) >> Ints(15)) & Ints(0x00010001);
  return TensorF8::widen_pair(codes) | (is_nan * Ints(0x7FFF));
}

// Words of numbers [d, d + 2 * kWords) of cached heads; d is a multiple of their number.
template <typename Cached, int kWords>
SIMT_PART void load_words(const Rows<const typename Cached::Stored>& cache, Ints place, Ints d,
                          Ints (&words)[kWords]) {
  if constexpr (requires(Ints bits) { Cached::widen(bits); }) {
    const Rows<const int> pairs = {reinterpret_cast<const int*>(cache.data), cache.count / 2};
    const Ints first = (place + d) >> Ints(1);
    if constexpr (kWords == 4) {
      pairs.load4(first, words);
    } else {
      pairs.load2(first, words);
    }
  } else if constexpr (requires(Ints code) { Cached::widen_byte(code); }) {
    const Rows<const int> fours = {reinterpret_cast<const int*>(cache.data), cache.count / 4};
    const Ints first = (place + d) >> Ints(2);
    SIMT_UNROLL
    for (int w = 0; w < kWords; w += 2) {
      const Ints four = fours.load(first + Ints(w / 2));
      words[w] = pair_of_codes(four);
      words[w + 1] = pair_of_codes(four >> Ints(16));
    }
  } else {
    SIMT_UNROLL
    for (int w = 0; w < kWords; ++w) {
      const Ints low = TensorTypeOf<Cached>::bits_of_number(Cached::load(cache, place, d + Ints(2 * w)));
      const Ints high = TensorTypeOf<Cached>::bits_of_number(Cached::load(cache, place, d + Ints(2 * w + 1)));
      words[w] = low | (high << Ints(16));
    }
  }
}

// A tile takes 16 numbers of a head: of each lane t of four, those from 8t + 4 * step on in a unit. So a lane
// loads eight numbers side by side.
template <typename Cached>
SIMT_PART void put_queries(const AttentionArgs<Cached>& args, const QueryTile& tile,
                           const Shared<int>& queries) {
  using Type = TensorTypeOf<Cached>;
  const int head_dim = args.merged.head_dim, units = (head_dim + kHeadUnit - 1) / kHeadUnit;
  const auto q = args.q.from(static_cast<int64_t>(tile.first_row) * args.q_stride);
  for (int half = 0; half < 2; ++half) {
    const LaneQuery query(tile, half);
    const Ints place =
        query.row * Ints(args.q_stride) + (query.head + Ints(tile.first_head)) * Ints(head_dim);
    for (int unit = 0; unit < units; ++unit) {
      SIMT_UNROLL
      for (int w = 0; w < 4; ++w) {
        const Ints d = ((lane_id() & Ints(3)) << Ints(3)) + Ints(unit * kHeadUnit + 2 * w);
        const Floats low = q.load_if(query.in && d < Ints(head_dim), place + d, 0.0F);
        const Floats high = q.load_if(query.in && d + Ints(1) < Ints(head_dim), place + d + Ints(1), 0.0F);
        const Ints word = Type::bits_of_number(low) | (Type::bits_of_number(high) << Ints(16));
        const int step = unit * 2 + w / 2, word_of_step = half + w % 2 * 2;
        queries.put((lane_id() + Ints(step * kWarp)) * Ints(4) + Ints(word_of_step), word);
      }
    }
  }
}

// A block of entries, as the list of one row has them, and the lane's queries that see them.
struct EntryBlock {
  int begin, from, to;  // begin is a multiple of kTensorEntries
  Ints places;          // where the heads of entry begin + lane begin in the cache
  Bools mine[2];
};

// The running softmax of the lane's queries.
struct LaneSoftmax {
  Floats largest[2], total[2];
};

template <typename Cached>
SIMT EntryBlock entry_block(const AttentionArgs<Cached>& args, const QueryTile& tile, int row, int begin,
                            int from, int to) {
  EntryBlock block;
  block.begin = begin;
  block.from = from;
  block.to = to;
  const Ints e = lane_id() + Ints(begin);
  const Bools in = e >= Ints(from) && e < Ints(to);
  const int kv_head = tile.first_head / (args.merged.heads / args.kv_heads);
  const Ints places =
      places_of_entries(args, row_entries(args.merged.seen, tile.first_row + row), kv_head, e, in);
  // Lanes without an entry read the first one, and do not count.
  block.places = select(in, places, Ints(shuffle(places, from - begin)));
  return block;
}

// Products of the queries with keys. Lane 4g + t has them for entries 8i + 2t and 8i + 2t + 1 of the block:
// of query g in scores[i][0] and [1], of query g + 8 in [2] and [3].
template <typename Cached>
SIMT_PART void score_block(const AttentionArgs<Cached>& args, const Shared<int>& queries, Ints places,
                           Floats (&scores)[kEntryTiles][4]) {
  using Type = TensorTypeOf<Cached>;
  SIMT_UNROLL
  for (int i = 0; i < kEntryTiles * 4; ++i) scores[i / 4][i % 4] = Floats(0.0F);
  const int units = (args.merged.head_dim + kHeadUnit - 1) / kHeadUnit;
  for (int unit = 0; unit < units; ++unit) {
    Ints a[2][4];
    SIMT_UNROLL
    for (int step = 0; step < 2; ++step)
      queries.get4((lane_id() + Ints((unit * 2 + step) * kWarp)) * Ints(4), a[step]);
    SIMT_UNROLL
    for (int i = 0; i < kEntryTiles; ++i) {
      const Ints place = shuffle(places, (lane_id() >> Ints(2)) + Ints(i * 8));
      Ints words[4];
      load_words<Cached>(args.k, place, ((lane_id() & Ints(3)) << Ints(3)) + Ints(unit * kHeadUnit), words);
      const Ints first[2] = {words[0], words[1]}, second[2] = {words[2], words[3]};
      Type::multiply(scores[i], a[0], first);
      Type::multiply(scores[i], a[1], second);
    }
  }
}

// The entry of the lane's scores [tile][0] or [1].
SIMT Ints entry_of_score(const EntryBlock& block, int tile, int i) {
  return ((lane_id() & Ints(3)) << Ints(1)) + Ints(block.begin + tile * 8 + i);
}

// The biases of distances: by the head's slope, from the last entry of the query's row.
template <typename Cached>
SIMT_PART void add_biases(const AttentionArgs<Cached>& args, const QueryTile& tile, const TileRows& rows,
                          const EntryBlock& block, int half, Floats (&scores)[kEntryTiles][4]) {
  const LaneQuery query(tile, half);
  const Floats slope = args.slopes.load_if(query.in, query.head + Ints(tile.first_head), 0.0F);
  const Ints last = shuffle(rows.end, query.row) - Ints(1);
  SIMT_UNROLL
  for (int i = 0; i < kEntryTiles * 2; ++i) {
    Floats& score = scores[i / 2][half * 2 + i % 2];
    score = add_rn(score, mul_rn(slope, to_float(entry_of_score(block, i / 2, i % 2) - last)));
  }
}

// Scores become weights, as words of mma_bf16(): of 16 entries in each of weights[]. The softmax goes on, and
// `shrink` is what the sums of earlier blocks are multiplied by. All: all queries see the whole block.
template <typename Cached, bool kAll>
SIMT_PART void weigh_block(const AttentionArgs<Cached>& args, const QueryTile& tile, const TileRows& rows,
                           const EntryBlock& block, Floats (&scores)[kEntryTiles][4], LaneSoftmax& softmax,
                           Floats (&shrink)[2], Ints (&weights)[kValueTiles][4]) {
  using Type = TensorTypeOf<Cached>;
  const float lowest = -__builtin_huge_valf();
  SIMT_UNROLL
  for (int half = 0; half < 2; ++half) {
    SIMT_UNROLL
    for (int i = 0; i < kEntryTiles * 2; ++i) {
      Floats& score = scores[i / 2][half * 2 + i % 2];
      score = scaled_scores(args, score);
    }
    if (!args.slopes.is_null()) add_biases(args, tile, rows, block, half, scores);
    Floats largest(lowest);
    SIMT_UNROLL
    for (int i = 0; i < kEntryTiles * 2; ++i) {
      Floats& score = scores[i / 2][half * 2 + i % 2];
      const Ints e = entry_of_score(block, i / 2, i % 2);
      if (!kAll) score = select(e >= Ints(block.from) && e < Ints(block.to), score, Floats(lowest));
      largest = max_of(largest, score);
    }
    largest = max_of(max_lanes(largest, 4), softmax.largest[half]);
    shrink[half] = exp_of_negative(sub_rn(softmax.largest[half], largest));
    Floats sum(0.0F);
    SIMT_UNROLL
    for (int i = 0; i < kEntryTiles; ++i) {
      const Ints low = Type::bits_of_number(exp_of_negative(sub_rn(scores[i][half * 2], largest)));
      const Ints high = Type::bits_of_number(exp_of_negative(sub_rn(scores[i][half * 2 + 1], largest)));
      sum = add_rn(add_rn(sum, Type::widen(low)), Type::widen(high));
      weights[i / 2][half + i % 2 * 2] = low | (high << Ints(16));
    }
    const Floats total = fma_rn(softmax.total[half], shrink[half], sum_lanes(sum, 4));
    softmax.largest[half] = kAll ? largest : select(block.mine[half], largest, softmax.largest[half]);
    softmax.total[half] = kAll ? total : select(block.mine[half], total, softmax.total[half]);
  }
}

// The numbers of two entries, side by side: number j of each.
SIMT Ints pair_of_entries(const Ints (&first)[2], const Ints (&second)[2], int j) {
  if (j % 2 == 0) return (first[j / 2] & Ints(0xFFFF)) | (second[j / 2] << Ints(16));
  return ((first[j / 2] >> Ints(16)) & Ints(0xFFFF)) | (second[j / 2] & Ints(static_cast<int>(0xFFFF0000U)));
}

// Adds the values of a step of 16 entries to the 32 outputs from `first` on; see add_block_values().
template <typename Cached, bool kAll>
SIMT_PART void add_step_values(const AttentionArgs<Cached>& args, const EntryBlock& block, int step,
                               int first, const Ints (&weights)[4], Floats (&sums)[4][4]) {
  Ints words[4][2];
  SIMT_UNROLL
  for (int i = 0; i < 4; ++i) {
    const Ints of_block = ((lane_id() & Ints(3)) << Ints(1)) + Ints(step * 16 + i % 2 + i / 2 * 8);
    const Ints d = (lane_id() >> Ints(2) << Ints(2)) + Ints(first);
    load_words<Cached>(args.v, shuffle(block.places, of_block), d, words[i]);
    if (kAll) continue;
    const Ints e = of_block + Ints(block.begin);
    const Bools in = e >= Ints(block.from) && e < Ints(block.to);
    for (Ints& word : words[i]) word = select(in, word, Ints(0));
  }
  SIMT_UNROLL
  for (int j = 0; j < 4; ++j) {
    const Ints b[2] = {pair_of_entries(words[0], words[1], j), pair_of_entries(words[2], words[3], j)};
    TensorTypeOf<Cached>::multiply(sums[j], weights, b);
  }
}

// Adds values by weights to the outputs. In a unit, lane 4g + t has outputs 8t + j and 8t + 4 + j of query g
// in y[unit][j][0] and [1], and of query g + 8 in [2] and [3].
template <typename Cached, bool kAll>
SIMT_PART void add_block_values(const AttentionArgs<Cached>& args, const QueryTile& tile,
                                const EntryBlock& block, const Floats (&shrink)[2],
                                const Ints (&weights)[kValueTiles][4], Floats (&y)[kOutputUnits][4][4]) {
  SIMT_UNROLL
  for (int unit = 0; unit < kOutputUnits; ++unit) {
    const int first = tile.first_output + unit * kHeadUnit;
    if (first >= args.merged.head_dim) break;
    Floats sums[4][4];
    SIMT_UNROLL
    for (int i = 0; i < 16; ++i) sums[i / 4][i % 4] = mul_rn(y[unit][i / 4][i % 4], shrink[i % 4 / 2]);
    SIMT_UNROLL
    for (int step = 0; step < kValueTiles; ++step)
      add_step_values<Cached, kAll>(args, block, step, first, weights[step], sums);
    SIMT_UNROLL
    for (int i = 0; i < 16; ++i) {
      Floats& sum = y[unit][i / 4][i % 4];
      sum = kAll ? sums[i / 4][i % 4] : select(block.mine[i % 4 / 2], sums[i / 4][i % 4], sum);
    }
  }
}

// A tile, its running softmax and its outputs, which lie as add_block_values() says.
template <typename Cached>
struct TileWork {
  const AttentionArgs<Cached>& args;
  const QueryTile& tile;
  const TileRows& rows;
  const Shared<int>& queries;
  LaneSoftmax softmax;
  Floats y[kOutputUnits][4][4];

  SIMT TileWork(const AttentionArgs<Cached>& of, const QueryTile& some, const TileRows& their_rows,
                const Shared<int>& their_queries)
      : args(of), tile(some), rows(their_rows), queries(their_queries) {
    SIMT_UNROLL
    for (int i = 0; i < kOutputUnits * 16; ++i) y[i / 16][i / 4 % 4][i % 4] = Floats(0.0F);
    SIMT_UNROLL
    for (int half = 0; half < 2; ++half) begin(half);
  }
  // A sink is an entry before chunk 0.
  SIMT void begin(int half) {
    softmax.largest[half] = Floats(-__builtin_huge_valf());
    softmax.total[half] = Floats(0.0F);
    if (args.merged.sinks.is_null() || tile.chunk > 0) return;
    const LaneQuery query(tile, half);
    const Bools has_sink = query.in && shuffle(rows.begin, query.row) < Ints(kChunkEntries);
    const Floats sinks = args.merged.sinks.load_if(has_sink, query.head + Ints(tile.first_head), 0.0F);
    softmax.largest[half] = select(has_sink, sinks, softmax.largest[half]);
    softmax.total[half] = select(has_sink, Floats(1.0F), softmax.total[half]);
  }
  template <bool kAll>
  SIMT void add(const EntryBlock& block) {
    Floats scores[kEntryTiles][4], shrink[2];
    Ints weights[kValueTiles][4];
    score_block(args, queries, block.places, scores);
    weigh_block<Cached, kAll>(args, tile, rows, block, scores, softmax, shrink, weights);
    add_block_values<Cached, kAll>(args, tile, block, shrink, weights, y);
  }
};

// The part of the block that a row sees, if any.
template <typename Cached>
SIMT void add_own_block(TileWork<Cached>& work, int row, int of_chunk) {
  const RowChunk chunk = RowChunk::of(work.rows.span(row), work.tile.chunk);
  const int begin = chunk.begin + of_chunk, end = begin + kTensorEntries;
  const int from = begin > chunk.from ? begin : chunk.from, to = end < chunk.to ? end : chunk.to;
  if (from >= to) return;
  EntryBlock block = entry_block(work.args, work.tile, row, begin, from, to);
  SIMT_UNROLL
  for (int half = 0; half < 2; ++half) block.mine[half] = LaneQuery(work.tile, half).row == Ints(row);
  work.template add<false>(block);
}

template <typename Cached>
SIMT void store_tile(const TileWork<Cached>& work) {
  const MergedAttention& merged = work.args.merged;
  const QueryTile& tile = work.tile;
  const int64_t first = (static_cast<int64_t>(tile.chunk) * merged.seen.rows + tile.first_row) * merged.heads;
  const auto out = merged.sums.y.from(first * merged.head_dim);
  const auto softmax = merged.sums.softmax.from(first * kSoftmaxNumbers);
  SIMT_UNROLL
  for (int half = 0; half < 2; ++half) {
    const LaneQuery query(tile, half);
    const Ints place = query.row * Ints(merged.heads) + query.head + Ints(tile.first_head);
    SIMT_UNROLL
    for (int i = 0; i < kOutputUnits * 8; ++i) {
      const int unit = i / 8, j = i % 4, column = i % 8 / 4;
      const Ints d = ((lane_id() & Ints(3)) << Ints(3)) + Ints(tile.first_output + unit * kHeadUnit + i % 8);
      out.store_if(query.in && d < Ints(merged.head_dim), place * Ints(merged.head_dim) + d,
                   work.y[unit][j][half * 2 + column]);
    }
    if (tile.first_output > 0) continue;
    const Ints number = lane_id() & Ints(3);
    const Floats numbers = select(number == Ints(0), work.softmax.largest[half], work.softmax.total[half]);
    softmax.store_if(query.in && number < Ints(kSoftmaxNumbers), place * Ints(kSoftmaxNumbers) + number,
                     numbers);
  }
}

template <typename Cached>
SIMT void attend_tile(const AttentionArgs<Cached>& args, const QueryTile& tile, const TileRows& rows,
                      const Shared<int>& queries) {
  put_queries(args, tile, queries);
  TileWork<Cached> work(args, tile, rows, queries);
  const SharedEntries& shared = rows.shared;
  for (int of_chunk = 0; of_chunk < kChunkEntries; of_chunk += kTensorEntries) {
    const int begin = shared.begin + of_chunk, end = begin + kTensorEntries;
    if (begin >= shared.from && end <= shared.to) {
      work.template add<true>(entry_block(args, tile, 0, begin, begin, end));
    } else {
      for (int row = 0; row < tile.rows; ++row) add_own_block(work, row, of_chunk);
    }
  }
  store_tile(work);
}

// Any number of warps takes all tiles, as attention() does.
template <typename Cached>
SIMT void tensor_attention(const Block& block, const AttentionArgs<Cached>& args) {
  block.wait_for_previous();
  const MergedAttention& merged = args.merged;
  const int first = block.index() * block.warps() + block.warp(), warps = block.count() * block.warps();
  const int longest = most_chunks(merged.seen), chunks = longest > 1 ? longest : 1;
  const QueryTiles tiles = QueryTiles::of(merged, args.kv_heads);
  const int items = tiles.items(merged, args.kv_heads, chunks), bytes = query_bytes(merged.head_dim);
  const Shared<int> queries(block, block.warp() * bytes, bytes / 4);
  for (int i = first; i < items; i += warps) {
    const QueryTile tile = tiles.tile(merged, args.kv_heads, chunks, i);
    const TileRows rows(merged.seen, tile);
    if (any_lane(Ints(tile.chunk) < rows.chunks())) attend_tile(args, tile, rows, queries);
    merge_tile(block, merged, tile, rows);
  }
  pack_padding(merged, first, warps);
}

}  // namespace outrider::simt
