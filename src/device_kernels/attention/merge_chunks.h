// SPDX-License-Identifier: Apache-2.0
// Merges the chunks of a row's attention in their order, as kernels/simd/attention_chunks.h does.
#pragma once

#include "device_kernels/attention/chunks.h"
#include "device_kernels/products/pack_inputs.h"
#include "device_kernels/rows/exponential.h"
#include "device_kernels/rows/row_part.h"

namespace outrider::simt {

struct MergeChunksArgs {
  ChunkSums sums;  // that attention_chunks() has written for the same rows
  Rows<float> y;   // [rows, heads, head_dim]
  SeenEntries seen;
  Weights<float> sinks;  // [heads]; null: there are none
  int heads;
  int head_dim;
  InputCodes packed;  // y as codes, where a row is chunks of inputs; or null
};

// The softmax of chunks, and their output, for the head and the number of each lane.
struct MergedChunks {
  Floats largest, total, y;
};

SIMT MergedChunks load_chunk(const MergeChunksArgs& args, const RowPart& part, Ints head, int chunk) {
  const int64_t place = (static_cast<int64_t>(chunk) * args.seen.rows + part.row) * args.heads;
  const auto softmax = args.sums.softmax.from(place * kSoftmaxNumbers);
  const Ints of_head = head * Ints(kSoftmaxNumbers);
  return {.largest = softmax.load_if(part.in, of_head, 0.0F),
          .total = softmax.load_if(part.in, of_head + Ints(1), 0.0F),
          .y = args.sums.y.from(place * args.head_dim).load_if(part.in, part.i, 0.0F)};
}

// Adds the sums of a chunk to the sums of the chunks before it.
SIMT_PART void add_chunk(const MergedChunks& chunk, MergedChunks& whole) {
  const Bools is_first = whole.total == Floats(0.0F);
  const Floats largest = select(chunk.largest > whole.largest, chunk.largest, whole.largest);
  const Floats kept = exp_of_negative(sub_rn(whole.largest, largest));
  const Floats added = exp_of_negative(sub_rn(chunk.largest, largest));
  whole.y = select(is_first, chunk.y, fma_rn(whole.y, kept, mul_rn(chunk.y, added)));
  whole.total = select(is_first, chunk.total, fma_rn(whole.total, kept, mul_rn(chunk.total, added)));
  whole.largest = select(is_first, chunk.largest, largest);
}

// The sums before the first chunk. A sink is an entry of chunk 0, even where a row sees nothing else of it.
SIMT MergedChunks before_chunks(const MergeChunksArgs& args, const RowPart& part, Ints head,
                                const RowSpan& span) {
  if (args.sinks.is_null() || span.begin < kChunkEntries)
    return {Floats(-__builtin_huge_valf()), Floats(0.0F), Floats(0.0F)};
  return {args.sinks.load_if(part.in, head, 0.0F), Floats(1.0F), Floats(0.0F)};
}

// The outputs of 32 numbers of a row.
SIMT_PART Floats merged_outputs(const MergeChunksArgs& args, const RowPart& part) {
  constexpr int kTogether = 8;  // chunks that are loaded before they are added
  const RowSpan span = row_span(args.seen, part.row);
  const Ints head = part.i / Ints(args.head_dim);
  MergedChunks whole = before_chunks(args, part, head, span);
  for (int first = 0; first < span.chunks(); first += kTogether) {
    MergedChunks chunks[kTogether];
    SIMT_UNROLL
    for (int c = 0; c < kTogether; ++c)
      if (first + c < span.chunks()) chunks[c] = load_chunk(args, part, head, first + c);
    SIMT_UNROLL
    for (int c = 0; c < kTogether; ++c)
      if (first + c < span.chunks()) add_chunk(chunks[c], whole);
  }
  return div_rn(whole.y, span.end == 0 ? Floats(1.0F) : whole.total);  // a row without entries gets zeros
}

// A warp takes 32 numbers of a row of y, which may belong to several heads; where rows are packed, of a
// padding row, too.
SIMT void merge_chunks(const Block& block, const MergeChunksArgs& args) {
  const bool packs = !args.packed.is_null();
  const int dim = args.heads * args.head_dim;
  const RowPart part = row_part_of(block, packs ? args.packed.padded : args.seen.rows, dim);
  if (part.row < 0) return;
  block.wait_for_previous();
  Floats y(0.0F);
  if (part.row < args.seen.rows) {
    y = merged_outputs(args, part);
    args.y.from(static_cast<int64_t>(part.row) * dim).store_if(part.in, part.i, y);
  }
  if (packs) pack_chunk(args.packed, part.row, item_of(block) % (dim / kChunk), y);
}

}  // namespace outrider::simt
