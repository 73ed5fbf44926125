// SPDX-License-Identifier: Apache-2.0
// The chunks of entries that rows see, and the sums of each chunk.
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

inline constexpr int kChunkEntries = 256;

// A row's list of entries: entries [0, prefix_len) of its sequence, then the entries tails[tail] to
// tails[tail + tail_len - 1]. Entry e of the sequence lies in slot pages[page + e / page_size] * page_size +
// e % page_size.
struct RowEntries {
  static constexpr int kNumbers = 4;  // page, prefix_len, tail, tail_len
  int page, prefix_len, tail, tail_len;
};

// The lists of rows, and which of their entries they see. See outrider::AttentionArgs.
struct SeenEntries {
  List<int> entries;  // [rows, RowEntries::kNumbers]
  int rows;
  int window;
  int chunk;
};

// The sums of each chunk, row and head. Chunks are counted from the first one that a row sees.
struct ChunkSums {
  Rows<float> softmax;  // [chunks, rows, heads, kSoftmaxNumbers]: the largest score, the sum of the weights
  Rows<float> y;        // [chunks, rows, heads, head_dim]: values by weights, not divided by their sum
};
inline constexpr int kSoftmaxNumbers = 2;

SIMT RowEntries row_entries(const SeenEntries& seen, int row) {
  const auto numbers = seen.entries.from(static_cast<int64_t>(row) * RowEntries::kNumbers);
  return {numbers.load_one(0), numbers.load_one(1), numbers.load_one(2), numbers.load_one(3)};
}

// The entries of its list that a row sees.
struct RowSpan {
  int begin, end;

  // A row without entries has no chunk.
  SIMT int chunks() const { return (end + kChunkEntries - 1) / kChunkEntries - begin / kChunkEntries; }
};

SIMT RowSpan row_span(const SeenEntries& seen, const RowEntries& entries) {
  const int end = entries.prefix_len + entries.tail_len;
  int begin = seen.window > 0 && end > seen.window ? end - seen.window : 0;
  if (seen.chunk > 0 && begin < (end - 1) / seen.chunk * seen.chunk)
    begin = (end - 1) / seen.chunk * seen.chunk;
  return {begin, end};
}

SIMT RowSpan row_span(const SeenEntries& seen, int row) { return row_span(seen, row_entries(seen, row)); }

// The chunks that a row of at most `longest` entries has at most.
SIMT int chunks_within(int longest, int window, int chunk) {
  int chunks = (longest + kChunkEntries - 1) / kChunkEntries;
  // Entries side by side begin anywhere in their first chunk.
  const int of_window = (window + kChunkEntries - 2) / kChunkEntries + 1;
  const int of_chunk = (chunk + kChunkEntries - 2) / kChunkEntries + 1;
  if (window > 0 && of_window < chunks) chunks = of_window;
  if (chunk > 0 && of_chunk < chunks) chunks = of_chunk;
  return chunks;
}

// The chunks that a row has at most; a lane reads the length of every 32nd row.
SIMT_PART int most_chunks(const SeenEntries& seen) {
  Ints longest(0);
  for (int first = 0; first < seen.rows; first += kWarp) {
    const Ints row = lane_id() + Ints(first), numbers = row * Ints(RowEntries::kNumbers);
    const Bools in = row < Ints(seen.rows);
    const Ints length =
        seen.entries.load_if(in, numbers + Ints(1), 0) + seen.entries.load_if(in, numbers + Ints(3), 0);
    longest = select(length > longest, length, longest);
  }
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    const Ints other = shuffle_xor(longest, apart);
    longest = select(other > longest, other, longest);
  }
  return chunks_within(shuffle(longest, 0), seen.window, seen.chunk);
}

}  // namespace outrider::simt
