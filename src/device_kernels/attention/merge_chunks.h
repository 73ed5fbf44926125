// SPDX-License-Identifier: Apache-2.0
// Merges the chunks of a row's attention in their order, as kernels/simd/attention_chunks.h does.
#pragma once

#include "device_kernels/attention/chunks.h"
#include "device_kernels/products/pack_inputs.h"
#include "device_kernels/rows/exponential.h"
#include "device_kernels/simt/arrivals.h"

namespace outrider::simt {

// The outputs of rows, and the chunks that they come from.
struct MergedAttention {
  ChunkSums sums;
  Rows<float> y;  // [rows, heads, head_dim]
  SeenEntries seen;
  Weights<float> sinks;  // [heads]; null: there are none
  int heads;
  int head_dim;
  int heads_together;  // that one warp merges: whole chunks of inputs, or all heads
  Rows<int> arrivals;  // [rows, heads / heads_together], 0 before and after
  InputCodes packed;   // y as codes, where a row is chunks of inputs; or null

  SIMT int dim() const { return heads * head_dim; }
};

// The fewest heads that are whole chunks of inputs, or all of them.
SIMT int heads_merged_together(int heads, int head_dim) {
  for (int some = 1; some < heads; ++some) {
    if (heads % some == 0 && some * head_dim % kChunk == 0) return some;
  }
  return heads;
}

// 32 numbers of a row's outputs, and their heads.
struct OutputPart {
  int row;
  Ints i;
  Bools in;
  Ints head;
};

// The softmax of chunks, and their output, for the head and the number of each lane.
struct MergedChunks {
  Floats largest, total, y;
};

SIMT MergedChunks load_chunk(const MergedAttention& args, const OutputPart& part, int chunk) {
  const int64_t place = (static_cast<int64_t>(chunk) * args.seen.rows + part.row) * args.heads;
  const auto softmax = args.sums.softmax.from(place * kSoftmaxNumbers);
  const Ints of_head = part.head * Ints(kSoftmaxNumbers);
  return {.largest = softmax.load_if(part.in, of_head, 0.0F),
          .total = softmax.load_if(part.in, of_head + Ints(1), 0.0F),
          .y = args.sums.y.from(place * args.head_dim).load_if(part.in, part.i, 0.0F)};
}

// Adds the sums of a chunk to the sums of the chunks before it.
SIMT void add_chunk(const MergedChunks& chunk, MergedChunks& whole) {
  const Bools is_first = whole.total == Floats(0.0F);
  const Floats largest = select(chunk.largest > whole.largest, chunk.largest, whole.largest);
  const Floats kept = exp_of_negative(sub_rn(whole.largest, largest));
  const Floats added = exp_of_negative(sub_rn(chunk.largest, largest));
  whole.y = select(is_first, chunk.y, fma_rn(whole.y, kept, mul_rn(chunk.y, added)));
  whole.total = select(is_first, chunk.total, fma_rn(whole.total, kept, mul_rn(chunk.total, added)));
  whole.largest = select(is_first, chunk.largest, largest);
}

// The sums before the first chunk. A sink is an entry of chunk 0, even where a row sees nothing else of it.
SIMT MergedChunks before_chunks(const MergedAttention& args, const OutputPart& part, const RowSpan& span) {
  if (args.sinks.is_null() || span.begin < kChunkEntries)
    return {Floats(-__builtin_huge_valf()), Floats(0.0F), Floats(0.0F)};
  return {args.sinks.load_if(part.in, part.head, 0.0F), Floats(1.0F), Floats(0.0F)};
}

inline constexpr int kMergedParts = 4;     // that a warp merges at once
inline constexpr int kMergedTogether = 2;  // chunks that are loaded before they are added

// Merges kMergedParts parts of some heads of a row from number `first` on; `end` ends these heads.
SIMT_PART void merge_parts(const MergedAttention& args, int row, int first, int end) {
  const RowSpan span = row_span(args.seen, row);
  OutputPart parts[kMergedParts];
  MergedChunks whole[kMergedParts];
  SIMT_UNROLL
  for (int p = 0; p < kMergedParts; ++p) {
    const Ints i = lane_id() + Ints(first + p * kWarp);
    parts[p] = {row, i, i < Ints(end), i / Ints(args.head_dim)};
    whole[p] = before_chunks(args, parts[p], span);
  }
  for (int begin = 0; begin < span.chunks(); begin += kMergedTogether) {
    MergedChunks chunks[kMergedTogether * kMergedParts];
    SIMT_UNROLL
    for (int c = 0; c < kMergedTogether * kMergedParts; ++c) {
      const int chunk = begin + c / kMergedParts;
      if (chunk < span.chunks() && first + c % kMergedParts * kWarp < end)
        chunks[c] = load_chunk(args, parts[c % kMergedParts], chunk);
    }
    SIMT_UNROLL
    for (int c = 0; c < kMergedTogether * kMergedParts; ++c) {
      if (begin + c / kMergedParts < span.chunks() && first + c % kMergedParts * kWarp < end)
        add_chunk(chunks[c], whole[c % kMergedParts]);
    }
  }
  const auto y = args.y.from(static_cast<int64_t>(row) * args.dim());
  SIMT_UNROLL
  for (int p = 0; p < kMergedParts; ++p) {
    if (first + p * kWarp >= end) break;
    // A row without entries gets zeros.
    const Floats number = div_rn(whole[p].y, span.end == 0 ? Floats(1.0F) : whole[p].total);
    y.store_if(parts[p].in, parts[p].i, number);
    if (!args.packed.is_null()) pack_chunk(args.packed, row, first / kChunk + p, number);
  }
}

// Merges the heads of a row that are together with this one.
SIMT void merge_heads(const MergedAttention& args, int row, int head) {
  const int numbers = args.heads_together * args.head_dim;
  const int begin = head / args.heads_together * numbers, end = begin + numbers;
  for (int first = begin; first < end; first += kMergedParts * kWarp) merge_parts(args, row, first, end);
}

// Counts a part of a chunk of a head; with the last one of its heads, of which each has `parts`, the warp
// merges them.
SIMT void merge_when_complete(const Block& block, const MergedAttention& args, int row, int head, int parts) {
  const int together = args.heads_together;
  const int64_t counter = static_cast<int64_t>(row) * (args.heads / together) + head / together;
  if (is_last_warp(block, args.arrivals, counter, parts * together)) merge_heads(args, row, head);
}

// Codes of padding rows are zeros. `warps` warps share them, of which this is number `warp`.
SIMT void pack_padding(const MergedAttention& args, int warp, int warps) {
  if (args.packed.is_null()) return;
  const int chunks = args.dim() / kChunk;
  for (int i = warp; i < (args.packed.padded - args.seen.rows) * chunks; i += warps)
    pack_chunk(args.packed, args.seen.rows + i / chunks, i % chunks, Floats(0.0F));
}

}  // namespace outrider::simt
