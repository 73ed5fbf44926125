// SPDX-License-Identifier: Apache-2.0
// The queries that a warp of attention on tensor cores takes together, and the entries that they see.
#pragma once

#include "device_kernels/attention/attention.h"

namespace outrider::simt {

inline constexpr int kTileQueries = 16;
inline constexpr int kTileOutputs = 128;  // numbers of a head that a warp adds up

// Heads of a group, of neighbouring rows, over a chunk of entries: query i is head i % heads of row i /
// heads. A warp computes kTileOutputs outputs of each, from first_output on.
struct QueryTile {
  int first_row, rows, first_head, heads;
  int chunk, first_output;

  SIMT int queries() const { return rows * heads; }
};

SIMT int tile_slices(int head_dim) { return (head_dim + kTileOutputs - 1) / kTileOutputs; }

// How the queries of all rows are divided.
struct QueryTiles {
  int heads, rows;        // of a tile at most
  int of_group, of_rows;  // tiles for the heads of a group, and for all rows

  SIMT static QueryTiles of(const MergedAttention& args, int kv_heads) {
    const int group = args.heads / kv_heads, heads = group < kTileQueries ? group : kTileQueries;
    const int rows = kTileQueries / heads;
    return {heads, rows, (group + heads - 1) / heads, (args.seen.rows + rows - 1) / rows};
  }
  SIMT int items(const MergedAttention& args, int kv_heads, int chunks) const {
    return of_group * kv_heads * chunks * of_rows * tile_slices(args.head_dim);
  }
  // Neighbours have the same entries.
  SIMT QueryTile tile(const MergedAttention& args, int kv_heads, int chunks, int index) const {
    const int slices = tile_slices(args.head_dim), group = args.heads / kv_heads;
    const int of_row = index / slices, of_chunk = of_row / of_rows, of_head = of_chunk / chunks;
    const int first_row = of_row % of_rows * rows, first = of_head % of_group * heads;
    return {.first_row = first_row,
            .rows = first_row + rows < args.seen.rows ? rows : args.seen.rows - first_row,
            .first_head = of_head / of_group * group + first,
            .heads = first + heads < group ? heads : group - first,
            .chunk = of_chunk % chunks,
            .first_output = index % slices * kTileOutputs};
  }
};

// Query lane / 4 (half 0) or lane / 4 + 8 (half 1), which a lane has in the registers of a tensor core.
struct LaneQuery {
  Ints row, head;  // of the tile
  Bools in;

  SIMT LaneQuery(const QueryTile& tile, int half) {
    const Ints query = (lane_id() >> Ints(2)) + Ints(half * 8);
    row = query / Ints(tile.heads);
    head = query % Ints(tile.heads);
    in = row < Ints(tile.rows);
  }
};

// The part of its list that a row sees of a chunk.
struct RowChunk {
  int begin;     // of the chunk, in the row's list
  int from, to;  // that the row sees; none: from >= to

  SIMT static RowChunk of(const RowSpan& span, int chunk) {
    const int begin = (span.begin / kChunkEntries + chunk) * kChunkEntries, end = begin + kChunkEntries;
    return {begin, begin > span.begin ? begin : span.begin, end < span.end ? end : span.end};
  }
};

// All rows of a tile see entries [from, to) of one sequence alike, in the chunk that begins at `begin`.
struct SharedEntries {
  int begin = 0, from = 0, to = 0;
};

// The rows of a tile. Lane i has what row i sees of its list; a lane without a row sees nothing.
struct TileRows {
  Ints begin = Ints(0), end = Ints(0);
  SharedEntries shared;

  SIMT TileRows(const SeenEntries& seen, const QueryTile& tile) {
    const int page = row_entries(seen, tile.first_row).page;
    for (int row = 0; row < tile.rows; ++row) {
      const RowEntries entries = row_entries(seen, tile.first_row + row);
      const RowSpan span = row_span(seen, entries);
      begin = select(lane_id() == Ints(row), Ints(span.begin), begin);
      end = select(lane_id() == Ints(row), Ints(span.end), end);
      const RowChunk own = RowChunk::of(span, tile.chunk);
      const int to = own.to < entries.prefix_len ? own.to : entries.prefix_len;
      const bool is_first = row == 0, is_alike = entries.page == page && own.begin == shared.begin;
      if (is_first) shared = {own.begin, own.from, to};
      shared.from = own.from > shared.from ? own.from : shared.from;
      shared.to = to < shared.to ? to : shared.to;
      if (!is_first && !is_alike) shared.to = 0;
    }
  }
  SIMT RowSpan span(int row) const { return {shuffle(begin, row), shuffle(end, row)}; }
  SIMT Ints chunks() const {
    return (end + Ints(kChunkEntries - 1)) / Ints(kChunkEntries) - begin / Ints(kChunkEntries);
  }
};

// Counts a tile for each of its queries, and merges the heads that it completes.
SIMT_PART void merge_tile(const Block& block, const MergedAttention& args, const QueryTile& tile,
                          const TileRows& rows) {
  const int slices = tile_slices(args.head_dim), together = args.heads_together;
  const Ints query = lane_id(), row = query / Ints(tile.heads), seen = shuffle(rows.chunks(), row);
  const Ints chunks = select(seen > Ints(1), seen, Ints(1));  // a row without entries is zeros
  const Bools in = row < Ints(tile.rows) && Ints(tile.chunk) < chunks;
  const Ints parts = select(in, chunks * Ints(slices * together), Ints(0));  // of heads merged together
  const Ints head = Ints(tile.first_head) + query % Ints(tile.heads);
  const Ints counter = (Ints(tile.first_row) + row) * Ints(args.heads / together) + head / Ints(together);
  const Bools counts = parts > Ints(1);
  Ints before(0);  // a part that is the only one comes without being counted
  if (any_lane(counts)) before = select(counts, args.arrivals.arrive_if(counts, counter), before);
  block.sync_warp();
  const Bools is_last = parts > Ints(0) && before + Ints(1) == parts;
  args.arrivals.store_if(is_last && counts, counter, Ints(0));
  const Ints merged = select(is_last, Ints(1), Ints(0));
  for (int i = 0; i < tile.queries(); ++i) {
    if (shuffle(merged, i) == 0) continue;
    merge_heads(args, tile.first_row + i / tile.heads, tile.first_head + i % tile.heads);
  }
}

}  // namespace outrider::simt
