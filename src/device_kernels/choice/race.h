// SPDX-License-Identifier: Apache-2.0
// The race that computes a coupled choice (sampling/randomness.h): the token with the smallest time comes
// first, the lower token of equal times.
#pragma once

#include "device_kernels/choice/choice_rows.h"
#include "device_kernels/rows/exponential.h"
#include "device_kernels/rows/row_part.h"
#include "device_kernels/simt/arrivals.h"

namespace outrider::simt {

struct Arrivals {
  Doubles time;
  Ints token;  // -1: none has arrived

  SIMT void take(const Bools& among, Doubles other, Ints other_token) {
    const Bools better = among && (other < time || (other == time && other_token < token));
    time = select(better, other, time);
    token = select(better, other_token, token);
  }
  SIMT void combine_lanes() {
    for (int apart = kWarp / 2; apart > 0; apart /= 2) {
      const Ints other = shuffle_xor(token, apart);
      take(other >= Ints(0), shuffle_xor(time, apart), other);
    }
  }
};

SIMT Arrivals no_arrivals() { return {Doubles(__builtin_huge_val()), Ints(-1)}; }

// The race of a row's tokens [begin, end).
struct Runners {
  Rows<const float> logits;
  Largest largest;
  double temperature;
  float per_temperature;
  uint64_t noise;
  int begin, end;
};

SIMT uint64_t noise_of(const ChoiceArgs& args, int row) {
  constexpr uint64_t kPurpose = 1;  // RandomPurpose::kToken
  const auto place = static_cast<uint64_t>(args.of.places.load_one(row));
  return mix64(mix64(args.key(row) ^ place) ^ kPurpose);
}

SIMT Doubles times_of(const Runners& of, Longs bits, Floats logits) {
  const Doubles exponentials = exponential_of(bits);
  if (of.largest.logit == __builtin_huge_valf()) return exponentials;
  return div_rn(exponentials, weights_of(logits, of.largest.logit, of.temperature));
}

SIMT Longs noise_bits(const Runners& of, Ints tokens) { return mix64(Longs(of.noise) ^ to_long(tokens)); }

// Lanes of tokens that may come before the bound. A token's exponential is -log u >= 1 - u, and the top bits
// of the noise say 1 - u. Most tokens are out after a look at these in f32, with a margin for its rounding.
SIMT Bools may_win(const Runners& of, Ints tokens, Floats logits, Longs bits, float bound) {
  const Bools in = tokens < Ints(of.end);
  if (of.largest.logit == __builtin_huge_valf()) return in && logits == Floats(of.largest.logit);
  const Floats steps = mul_rn(sub_rn(Floats(of.largest.logit), logits), Floats(of.per_temperature));
  const Bools counts = in && steps < Floats(64.0F);  // as the race on this machine has it
  const Floats weights = exp_of_negative(sub_rn(Floats(0.0F), select(counts, steps, Floats(0.0F))));
  const Floats lost = to_float(low_word((bits ^ Longs(~uint64_t{0})) >> Longs(uint64_t{40})));
  return counts && mul_rn(lost, Floats(0x1p-24F)) <= mul_rn(weights, Floats(bound));
}

SIMT_PART Arrivals race_of_logits(const Runners& of) {
  constexpr float kMargin = 1.01F;
  Arrivals first = no_arrivals();
  const Ints largest(of.largest.token);
  const Doubles sure = times_of(of, noise_bits(of, largest), Floats(of.largest.logit));
  float bound = mul_rn(to_float(shuffle(sure, 0)), kMargin);
  for (int begin = of.begin; begin < of.end; begin += kWarp) {
    const Ints tokens = lane_id() + Ints(begin);
    const Floats logits = of.logits.load_if(tokens < Ints(of.end), tokens, -__builtin_huge_valf());
    const Longs bits = noise_bits(of, tokens);
    const Bools among = may_win(of, tokens, logits, bits, bound);
    if (!any_lane(among)) continue;
    first.take(among, times_of(of, bits, select(among, logits, Floats(of.largest.logit))), tokens);
    Arrivals best = first;
    best.combine_lanes();
    const float earlier = mul_rn(to_float(shuffle(best.time, 0)), kMargin);
    bound = earlier < bound ? earlier : bound;
  }
  return first;
}

// The kept tokens have their weights divided by the sum, as a distribution has.
SIMT_PART Arrivals race_of_kept(const ChoiceArgs& args, const Runners& of, int row) {
  const int64_t list = static_cast<int64_t>(row) * args.vocab;
  const auto tokens = args.kept_tokens.from(list);
  const auto weights = args.kept_weights.from(list);
  const Doubles total(args.totals.load_one(row));
  Arrivals first = no_arrivals();
  for (int begin = of.begin; begin < of.end; begin += kWarp) {
    const int count = of.end - begin;
    const Ints some = tokens.load_some(begin, count, 0);
    const Doubles shares = div_rn(weights.load_some(begin, count, 1.0), total);
    first.take(lane_id() < Ints(count), div_rn(exponential_of(noise_bits(of, some)), shares), some);
  }
  return first;
}

// The first token of all parts of a row.
SIMT_PART Ints first_of_row(const ChoiceArgs& args, int row) {
  Arrivals first = no_arrivals();
  for (int part = 0; part < args.parts; part += kWarp) {
    const Ints of_row = lane_id() + Ints(part), i = of_row + Ints(row * args.parts);
    const Bools in = of_row < Ints(args.parts);
    const Ints tokens = args.firsts.load_if(in, i, -1);
    first.take(tokens >= Ints(0), args.times.load_if(in, i, __builtin_huge_val()), tokens);
  }
  first.combine_lanes();
  return first.token;
}

// A warp takes a part of a row, or of its kept tokens. The last one of the row chooses. Rows of other modes
// have their tokens.
SIMT void race_tokens(const Block& block, const ChoiceArgs& args) {
  const int item = block.index() * block.warps() + block.warp();
  if (item >= args.rows * args.parts) return;
  block.wait_for_previous();
  const int row = item / args.parts, mode = args.mode(row);
  if (mode != kRace && mode != kRaceOfKept) return;
  const int all = mode == kRace ? args.vocab : args.kept.load_one(row);
  const int begin = item % args.parts * kPartTokens, end = begin + kPartTokens;
  const Runners of{.logits = args.logits.from(static_cast<int64_t>(row) * args.stride),
                   .largest = largest_of_row(args, row),
                   .temperature = args.temperature(row),
                   .per_temperature = args.per_temperature(row),
                   .noise = noise_of(args, row),
                   .begin = begin,
                   .end = end < all ? end : all};
  Arrivals first = no_arrivals();
  if (of.largest.token >= 0) first = mode == kRace ? race_of_logits(of) : race_of_kept(args, of, row);
  first.combine_lanes();
  const Bools is_first = lane_id() == Ints(0);
  args.times.store_if(is_first, Ints(item), first.time);
  args.firsts.store_if(is_first, Ints(item), first.token);
  if (!is_last_warp(block, args.arrivals, row, args.parts)) return;
  args.chosen.store_if(is_first, Ints(row), first_of_row(args, row));
}

// Tokens that are never chosen, in rows of logits: they become -infinity.
struct LeaveOutArgs {
  Rows<float> logits;  // [rows, stride]
  List<int> tokens;    // each below stride
  int rows;
  int stride;
};

// A warp takes 32 tokens of a row.
SIMT void leave_out(const Block& block, const LeaveOutArgs& args) {
  const auto count = static_cast<int>(args.tokens.count);
  const auto [index, i, in] = row_part_of(block, args.rows, count);
  if (index < 0) return;
  block.wait_for_previous();
  const auto row = args.logits.from(static_cast<int64_t>(index) * args.stride);
  row.store_if(in, args.tokens.load_if(in, i, 0), Floats(-__builtin_huge_valf()));
}

}  // namespace outrider::simt
