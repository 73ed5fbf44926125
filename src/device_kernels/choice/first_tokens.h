// SPDX-License-Identifier: Apache-2.0
// The first tokens of rows, from which the children of drafted nodes are taken: the likeliest ones, or the
// first arrivals of the race that computes coupled choices.
#pragma once

#include "device_kernels/choice/race.h"

namespace outrider::simt {

// A token of each lane with its key. Lower keys come first, and of equal keys lower tokens. A lane without a
// token comes last.
struct FirstTokens {
  static constexpr int kNone = 0x7FFFFFFF;
  Doubles key;
  Ints token;

  SIMT Bools is_token() const { return token < Ints(kNone); }
  SIMT Bools comes_before(const FirstTokens& other) const {
    return key < other.key || (key == other.key && token < other.token);
  }
  SIMT FirstTokens of_lanes(int apart) const { return {shuffle_xor(key, apart), shuffle_xor(token, apart)}; }
  // Lanes of the mask keep the earlier one of themselves and the lane so far apart, the others the later one.
  SIMT void exchange(int apart, const Bools& keeps_earlier) {
    const FirstTokens other = of_lanes(apart);
    const Bools is_earlier = other.comes_before(*this), is_later = comes_before(other);
    const Bools takes = (keeps_earlier && is_earlier) || (!keeps_earlier && is_later);
    key = select(takes, other.key, key);
    token = select(takes, other.token, token);
  }
};

SIMT FirstTokens no_tokens() { return {Doubles(__builtin_huge_val()), Ints(FirstTokens::kNone)}; }

// Puts lanes in order of which both halves are, one of them in reverse.
SIMT_PART FirstTokens merged_halves(FirstTokens x) {
  for (int apart = kWarp / 2; apart > 0; apart /= 2) x.exchange(apart, (lane_id() & Ints(apart)) == Ints(0));
  return x;
}

SIMT_PART FirstTokens in_order(FirstTokens x) {
  for (int size = 2; size <= kWarp; size *= 2) {
    const Bools rises = (lane_id() & Ints(size % kWarp)) == Ints(0);
    for (int apart = size / 2; apart > 0; apart /= 2) {
      const Bools is_lower = (lane_id() & Ints(apart)) == Ints(0);
      x.exchange(apart, (is_lower && rises) || (!is_lower && !rises));
    }
  }
  return x;
}

// The first ones of two lists that are in order.
SIMT_PART FirstTokens first_of_both(FirstTokens list, const FirstTokens& other) {
  const FirstTokens reversed = other.of_lanes(kWarp - 1);
  const Bools is_earlier = reversed.comes_before(list);
  list.key = select(is_earlier, reversed.key, list.key);
  list.token = select(is_earlier, reversed.token, list.token);
  return merged_halves(list);
}

// A list in order of which the first `count` lanes matter.
struct Podium {
  FirstTokens first;
  int count;

  SIMT double last_key() const { return shuffle(first.key, count - 1); }
  // `some`: in any order.
  SIMT void enter(const FirstTokens& some) {
    const FirstTokens last = {Doubles(last_key()), Ints(shuffle(first.token, count - 1))};
    if (any_lane(some.comes_before(last))) first = first_of_both(first, in_order(some));
  }
};

// Lists of the first tokens of each part of each row.
struct ListFirstArgs {
  ChoiceArgs choice;      // kGreedy: the likeliest tokens; keys are logits with the other sign
  Rows<const int> slots;  // [rows]; -1: nobody uses the row; or no rows: all are used
  Rows<double> keys;      // [rows, parts, 32]
  Rows<int> tokens;       // [rows, parts, 32]
  Rows<double> sums;      // [rows, parts]: of kGreedy rows, the sum of all weights; or no numbers
  double ranking;         // the temperature of these weights
  int count;              // tokens that are wanted of each row

  SIMT FirstTokens load(int item) const {
    const int64_t first = static_cast<int64_t>(item) * kWarp;
    return {keys.from(first).load(lane_id()), tokens.from(first).load(lane_id())};
  }
  SIMT void store(int item, const FirstTokens& list) const {
    const int64_t first = static_cast<int64_t>(item) * kWarp;
    keys.from(first).store(lane_id(), list.key);
    tokens.from(first).store(lane_id(), list.token);
  }
};

// As sampling/logit_scan.cc has it: 2^x for -1000 <= x <= 0.
SIMT_PART Doubles exp2_roughly_of(Doubles x) {
  const Doubles shifted = plus(x, Doubles(kRoundToWhole));
  const Doubles y = times(sub_rn(x, sub_rn(shifted, Doubles(kRoundToWhole))), Doubles(0.69314718055994531));
  Doubles sum = line(1.0 / 5040, y, 1.0 / 40320);
  sum = plus(times(sum, y), Doubles(1.0 / 720));
  sum = plus(times(sum, y), Doubles(1.0 / 120));
  sum = plus(times(sum, y), Doubles(1.0 / 24));
  sum = plus(times(sum, y), Doubles(1.0 / 6));
  sum = plus(times(sum, y), Doubles(0.5));
  sum = plus(times(sum, y), Doubles(1.0));
  sum = plus(times(sum, y), Doubles(1.0));
  return from_words(low_word(sum), high_word(sum) + (low_word(shifted) << Ints(20)));
}

SIMT Doubles sum_lanes(Doubles x) {
  for (int apart = kWarp / 2; apart > 0; apart /= 2) x = add_rn(x, shuffle_xor(x, apart));
  return x;
}

// The part of exp_sum() of tokens [begin, end), in its order. Tokens of +infinity share all mass.
SIMT_PART double exp_sum_of(const Rows<const float>& logits, int begin, int end, float largest,
                            double temperature) {
  const Doubles least(-1000.0), scale(div_rn(1.4426950408889634, temperature));
  Doubles chains(0.0);
  for (int first = begin; first < end; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Bools in = i < Ints(end);
    const Floats logit = logits.load_if(in, i, -__builtin_huge_valf());
    Doubles terms;
    if (largest == __builtin_huge_valf()) {
      terms = select(logit == Floats(largest), Doubles(1.0), Doubles(0.0));
    } else {
      const Doubles x = times(sub_rn(to_double(logit), to_double(Floats(largest))), scale);
      terms = exp2_roughly_of(select(x > least, x, least));
    }
    chains = add_rn(chains, select(in, terms, Doubles(0.0)));
  }
  return shuffle(sum_lanes(chains), 0);
}

// The keys of 32 tokens that may be among the first. Lanes beyond `end` have none.
SIMT_PART FirstTokens likely_tokens(const Rows<const float>& logits, int first, int end) {
  const Ints i = lane_id() + Ints(first);
  const Floats logit = logits.load_if(i < Ints(end), i, -__builtin_huge_valf());
  const Bools is_possible = logit > Floats(-__builtin_huge_valf());  // false for NaN
  const Doubles key = sub_rn(Doubles(0.0), to_double(logit));
  return {select(is_possible, key, Doubles(__builtin_huge_val())),
          select(is_possible, i, Ints(FirstTokens::kNone))};
}

SIMT_PART FirstTokens early_tokens(const Runners& of, int first, float bound) {
  const Ints tokens = lane_id() + Ints(first);
  const Floats logits = of.logits.load_if(tokens < Ints(of.end), tokens, -__builtin_huge_valf());
  const Longs bits = noise_bits(of, tokens);
  const Bools among = may_win(of, tokens, logits, bits, bound);
  if (!any_lane(among)) return no_tokens();
  const Doubles times = times_of(of, bits, select(among, logits, Floats(of.largest.logit)));
  return {select(among, times, Doubles(__builtin_huge_val())),
          select(among, tokens, Ints(FirstTokens::kNone))};
}

// Kept tokens by their times in the race, or by their probabilities.
SIMT_PART FirstTokens first_kept_tokens(const ChoiceArgs& args, const Runners& of, int row, int first) {
  const int64_t list = static_cast<int64_t>(row) * args.vocab;
  const int count = of.end - first;
  const Ints tokens = args.kept_tokens.from(list).load_some(first, count, 0);
  const Doubles shares =
      div_rn(args.kept_weights.from(list).load_some(first, count, 1.0), Doubles(args.totals.load_one(row)));
  const Bools in = lane_id() < Ints(count);
  const Doubles keys = args.mode(row) == kLikeliestOfKept
                           ? sub_rn(Doubles(0.0), shares)
                           : div_rn(exponential_of(noise_bits(of, tokens)), shares);
  return {select(in, keys, Doubles(__builtin_huge_val())), select(in, tokens, Ints(FirstTokens::kNone))};
}

SIMT_PART FirstTokens first_of_part(const ListFirstArgs& args, const Runners& of, int row) {
  constexpr float kMargin = 1.01F;
  const int mode = args.choice.mode(row);
  Podium podium{no_tokens(), args.count};
  for (int first = of.begin; first < of.end; first += kWarp) {
    const float bound = mul_rn(to_float(podium.last_key()), kMargin);  // of a race
    podium.enter(mode == kGreedy ? likely_tokens(of.logits, first, of.end)
                 : mode == kRace ? early_tokens(of, first, bound)
                                 : first_kept_tokens(args.choice, of, row, first));
  }
  return podium.first;
}

// A warp takes a part of a row, or of its kept tokens.
SIMT void list_first(const Block& block, const ListFirstArgs& args) {
  const int item = block.index() * block.warps() + block.warp();
  if (item >= args.choice.rows * args.choice.parts) return;
  block.wait_for_previous();
  const int row = item / args.choice.parts, mode = args.choice.mode(row);
  if (mode == kNoChoice || (!args.slots.is_null() && args.slots.load_one(row) < 0)) return;
  const Largest largest = largest_of_row(args.choice, row);
  const int all = reads_kept(mode) ? args.choice.kept.load_one(row) : args.choice.vocab;
  const int begin = item % args.choice.parts * kPartTokens, end = begin + kPartTokens;
  const Runners of{.logits = args.choice.logits.from(static_cast<int64_t>(row) * args.choice.stride),
                   .largest = largest,
                   .temperature = args.choice.temperature(row),
                   .per_temperature = args.choice.per_temperature(row),
                   .noise = noise_of(args.choice, row),
                   .begin = begin,
                   .end = end < all ? end : all};
  const FirstTokens first = largest.token < 0 ? no_tokens() : first_of_part(args, of, row);
  args.store(item, first);
  if (mode != kGreedy || args.sums.is_null() || largest.token < 0) return;
  const double sum = exp_sum_of(of.logits, of.begin, of.end, largest.logit, args.ranking);
  args.sums.store_if(lane_id() == Ints(0), Ints(item), Doubles(sum));
}

}  // namespace outrider::simt
