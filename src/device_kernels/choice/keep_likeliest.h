// SPDX-License-Identifier: Apache-2.0
// The largest logit of rows, and the tokens that top-k and min-p keep, with their weights, as LogitsProcessor
// has them.
#pragma once

#include "device_kernels/choice/choice_rows.h"
#include "device_kernels/simt/arrivals.h"

namespace outrider::simt {

// Shared memory: a word of each lane of the block, and of a warp.
struct KeptMemory {
  static constexpr int kMostWarps = 8;
  static constexpr int kSums = kMostWarps * kWarp * 4;
  static constexpr int kBytes = kSums + kWarp * 4;
};

// One row, of which each warp has a slice of tokens.
struct KeptRow {
  Rows<const float> logits;
  Largest largest;
  double temperature, min_p;
  float per_temperature, depth;
  int begin, end;  // of the slice
};

SIMT_PART KeptRow kept_row(const Block& block, const ChoiceArgs& args, int row) {
  const int slice = (args.vocab + kWarp * block.warps() - 1) / (kWarp * block.warps()) * kWarp;
  const int begin = block.warp() * slice, end = begin + slice;
  return {.logits = args.logits.from(static_cast<int64_t>(row) * args.stride),
          .largest = largest_of_row(args, row),
          .temperature = args.temperature(row),
          .min_p = args.min_p(row),
          .per_temperature = args.per_temperature(row),
          .depth = args.depth(row),
          .begin = begin < args.vocab ? begin : args.vocab,
          .end = end < args.vocab ? end : args.vocab};
}

// The logits of 32 tokens of the slice; lanes beyond it have -infinity.
SIMT Floats logits_at(const KeptRow& row, int first) {
  const Ints i = lane_id() + Ints(first);
  return row.logits.load_if(i < Ints(row.end), i, -__builtin_huge_valf());
}

// Numbers with the order of the logits; -0 is 0.
SIMT Ints order_of(Floats logits) {
  const Ints bits = bits_of(add_rn(logits, Floats(0.0F)));
  return bits ^ ((bits >> Ints(31)) & Ints(0x7FFFFFFF));
}

SIMT Bools is_possible(Floats logits) { return logits > Floats(-__builtin_huge_valf()); }

// The sum of the block's lanes, and of the lanes of warps before this one.
struct BlockSum {
  int all, before;
};
SIMT_PART BlockSum sum_block(const Block& block, Ints counts) {
  const Shared<int> words(block, 0, KeptMemory::kMostWarps * kWarp);
  words.put_from(block.warp() * kWarp, counts);
  block.sync();
  Ints all(0), before(0);
  for (int warp = 0; warp < block.warps(); ++warp) {
    const Ints of_warp = words.get_from(warp * kWarp);
    all = all + of_warp;
    if (warp < block.warp()) before = before + of_warp;
  }
  block.sync();
  return {shuffle(sum_lanes(all, kWarp), 0), shuffle(sum_lanes(before, kWarp), 0)};
}

SIMT_PART int count_from(const Block& block, const KeptRow& row, int least) {
  Ints counts(0);
  for (int first = row.begin; first < row.end; first += kWarp) {
    const Floats logits = logits_at(row, first);
    const Bools in = is_possible(logits) && order_of(logits) >= Ints(least);
    counts = counts + select(in, Ints(1), Ints(0));
  }
  return sum_block(block, counts).all;
}

// Tokens above the threshold are among the top k, and so are the first `ties` tokens at it.
struct TopK {
  int threshold;
  int ties;
};

SIMT_PART TopK find_top_k(const Block& block, const KeptRow& row, int k) {
  constexpr int kLowest = -0x7FFFFFFF - 1;
  if (k == 0 || count_from(block, row, kLowest) <= k) return {kLowest, 0x7FFFFFFF};
  // The largest number that k tokens reach, from its highest bit on.
  unsigned threshold = 0x80000000U;
  for (unsigned bit = 0x80000000U; bit != 0; bit >>= 1) {
    const unsigned candidate = threshold + bit;
    if (count_from(block, row, static_cast<int>(candidate)) >= k) threshold = candidate;
  }
  const bool is_highest = threshold == 0x7FFFFFFFU;
  const int above = is_highest ? 0 : count_from(block, row, static_cast<int>(threshold + 1));
  return {static_cast<int>(threshold), k - above};
}

// The kept tokens among 32, with their weights; `ties` tokens at the threshold came before.
struct KeptTokens {
  Bools kept;
  Doubles weights;
};
SIMT_PART KeptTokens kept_tokens(const KeptRow& row, const TopK& top, int first, int& ties) {
  const Floats logits = logits_at(row, first);
  const Ints order = order_of(logits);
  const Bools possible = is_possible(logits), at = possible && order == Ints(top.threshold);
  const Bools in_top =
      possible && (order > Ints(top.threshold) || (at && count_before(at) + Ints(ties) < Ints(top.ties)));
  ties += count_lanes(at);
  const Floats steps = mul_rn(sub_rn(Floats(row.largest.logit), logits), Floats(row.per_temperature));
  const Bools near = in_top && !(steps > Floats(row.depth));
  if (!any_lane(near)) return {near, Doubles(0.0)};
  const Floats counted = select(near, logits, Floats(row.largest.logit));
  const Doubles weights = weights_of(counted, row.largest.logit, row.temperature);
  const Bools heavy = weights >= Doubles(0x1p-1022) && weights >= Doubles(row.min_p);
  return {near && heavy, weights};
}

// Writes the kept tokens of the slice behind `place` others; returns how many these are.
SIMT_PART Ints write_kept(const ChoiceArgs& args, int row, const KeptRow& of, const TopK& top, int ties,
                          int place) {
  const int64_t begin = static_cast<int64_t>(row) * args.vocab;
  const auto tokens = args.kept_tokens.from(begin);
  const auto weights = args.kept_weights.from(begin);
  for (int first = of.begin; first < of.end; first += kWarp) {
    const KeptTokens found = kept_tokens(of, top, first, ties);
    const Ints to = count_before(found.kept) + Ints(place);
    tokens.store_if(found.kept, to, lane_id() + Ints(first));
    weights.store_if(found.kept, to, found.weights);
    place += count_lanes(found.kept);
  }
  return Ints(place);
}

// In the order of the tokens.
SIMT_PART double sum_in_order(const Rows<double>& weights, int count) {
  double total = 0.0;
  for (int first = 0; first < count; first += kWarp) {
    const Doubles some = weights.load_some(first, count - first, 0.0);
    for (int lane = 0; lane < kWarp && first + lane < count; ++lane)
      total = add_rn(total, shuffle(some, lane));
  }
  return total;
}

// Each warp of the block takes a slice of the row.
SIMT_PART void keep_likeliest(const Block& block, const ChoiceArgs& args, int row) {
  const KeptRow of = kept_row(block, args, row);
  const TopK top = find_top_k(block, of, args.top_k(row));
  Ints at_threshold(0), kept(0);
  for (int first = of.begin; first < of.end; first += kWarp) {
    const Floats logits = logits_at(of, first);
    const Bools at = is_possible(logits) && order_of(logits) == Ints(top.threshold);
    at_threshold = at_threshold + select(at, Ints(1), Ints(0));
  }
  const int ties_before = sum_block(block, at_threshold).before;
  int ties = ties_before;
  for (int first = of.begin; first < of.end; first += kWarp)
    kept = kept + select(kept_tokens(of, top, first, ties).kept, Ints(1), Ints(0));
  const BlockSum counts = sum_block(block, kept);
  write_kept(args, row, of, top, ties_before, counts.before);
  block.sync();
  if (block.warp() != 0) return;
  const double total =
      sum_in_order(args.kept_weights.from(static_cast<int64_t>(row) * args.vocab), counts.all);
  const Bools is_first = lane_id() == Ints(0);
  args.totals.store_if(is_first, Ints(row), Doubles(total));
  args.kept.store_if(is_first, Ints(row), Ints(counts.all));
}

// A block takes some parts of a row, one for each warp. The last block of the row keeps its likeliest tokens
// where the mode reads them; else it chooses the largest logit, or none.
SIMT void find_largest(const Block& block, const ChoiceArgs& args) {
  const int groups = (args.parts + block.warps() - 1) / block.warps();
  const int row = block.index() / groups, part = block.index() % groups * block.warps() + block.warp();
  block.wait_for_previous();
  const int mode = args.mode(row);
  if (part < args.parts && mode != kNoChoice) find_largest_of_part(args, row, part);
  const Shared<int> words(block, KeptMemory::kSums, kWarp);
  if (!is_last_block(block, words, args.arrivals, row, groups)) return;
  if (reads_kept(mode)) return keep_likeliest(block, args, row);
  if (block.warp() != 0) return;
  const Ints token(mode == kGreedy ? largest_of_row(args, row).token : -1);
  args.chosen.store_if(lane_id() == Ints(0), Ints(row), token);
}

}  // namespace outrider::simt
