// SPDX-License-Identifier: Apache-2.0
// Rows of logits from which tokens are chosen, as CoupledChooser chooses them. Two kernels do it one after
// the other. The first finds the largest logit of each part of a row, then the row's token or what truncation
// keeps. The second finds the first token of each part in the race, then of the row.
#pragma once

#include "device_kernels/choice/exact_numbers.h"

namespace outrider::simt {

enum ChoiceMode : int {
  kNoChoice,        // the row gets no token
  kGreedy,          // the largest logit
  kRace,            // the coupled race of all tokens
  kRaceOfKept,      // the race of the tokens that top-k and min-p keep
  kLikeliestOfKept  // for lists of tokens: the likeliest that top-k and min-p keep, by their probabilities
};

// Whether the mode reads kept tokens with their weights.
SIMT bool reads_kept(int mode) { return mode == kRaceOfKept || mode == kLikeliestOfKept; }

inline constexpr int kPartTokens = 1024;  // of a row, for a warp

// Parameters of rows, one after the other. Row i has the parameters of row i % period.
struct ChoiceParameters {
  List<int> modes;         // [period, 2]: ChoiceMode, top-k (0: all tokens)
  List<double> limits;     // [period, 2]: temperature, min-p
  List<float> steepness;   // [period, 2]: 1 / temperature, logarithms of weights below which min-p keeps none
  List<uint64_t> keys;     // [period]: of the randomness, without position
  Rows<const int> places;  // [rows]: the positions of the tokens chosen
};

struct ChoiceArgs {
  Rows<const float> logits;  // [rows, stride]
  ChoiceParameters of;
  // Between the kernels:
  Rows<float> largest;        // [rows, parts]
  Rows<int> largest_tokens;   // [rows, parts]; -1: there is none
  Rows<int> kept;             // [rows]
  Rows<int> kept_tokens;      // [rows, vocab], ascending
  Rows<double> kept_weights;  // [rows, vocab]
  Rows<double> totals;        // [rows], of kept weights
  Rows<double> times;         // [rows, parts]
  Rows<int> firsts;           // [rows, parts]: tokens with these times, or -1
  Rows<int> arrivals;         // [rows], 0 before and after each kernel
  Rows<int> chosen;           // [rows]; -1: no token has a probability
  int rows;
  int vocab;
  int stride;
  int parts;   // of kPartTokens
  int period;  // see ChoiceParameters

  SIMT int mode(int row) const { return of.modes.load_one(2 * (row % period)); }
  SIMT int top_k(int row) const { return of.modes.load_one(2 * (row % period) + 1); }
  SIMT double temperature(int row) const { return of.limits.load_one(2 * (row % period)); }
  SIMT double min_p(int row) const { return of.limits.load_one(2 * (row % period) + 1); }
  SIMT float per_temperature(int row) const { return of.steepness.load_one(2 * (row % period)); }
  SIMT float depth(int row) const { return of.steepness.load_one(2 * (row % period) + 1); }
  SIMT uint64_t key(int row) const { return of.keys.load_one(row % period); }
};

// A number and a token of each lane.
struct Candidates {
  Floats logit;
  Ints token;

  // The larger logit of two, and the lower token of equal ones.
  SIMT void take(Floats other, Ints other_token) {
    const Bools better = other > logit || (other == logit && other_token < token);
    logit = select(better, other, logit);
    token = select(better, other_token, token);
  }
};

struct Largest {
  float logit;
  int token;  // -1: all are -infinity
};

// The largest of the lanes. A lane without a token has -1 and -infinity.
SIMT_PART Largest largest_of_lanes(Candidates lanes) {
  for (int apart = kWarp / 2; apart > 0; apart /= 2)
    lanes.take(shuffle_xor(lanes.logit, apart), shuffle_xor(lanes.token, apart));
  return {shuffle(lanes.logit, 0), shuffle(lanes.token, 0)};
}

// The largest logit of a part of a row. NaN counts as -infinity.
SIMT_PART void find_largest_of_part(const ChoiceArgs& args, int row, int part) {
  const auto logits = args.logits.from(static_cast<int64_t>(row) * args.stride);
  const int begin = part * kPartTokens;
  Candidates best{Floats(-__builtin_huge_valf()), Ints(-1)};
  for (int first = begin; first < begin + kPartTokens && first < args.vocab; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Floats logit = logits.load_if(i < Ints(args.vocab), i, -__builtin_huge_valf());
    const Bools better = logit > best.logit;
    best.logit = select(better, logit, best.logit);
    best.token = select(better, i, best.token);
  }
  const Largest found = largest_of_lanes(best);
  const Bools is_first = lane_id() == Ints(0);
  const Ints place(row * args.parts + part);
  args.largest.store_if(is_first, place, Floats(found.logit));
  args.largest_tokens.store_if(is_first, place, Ints(found.token));
}

// The largest logit of a row, after find_largest_of_part() of all its parts.
SIMT_PART Largest largest_of_row(const ChoiceArgs& args, int row) {
  Candidates best{Floats(-__builtin_huge_valf()), Ints(-1)};
  for (int first = 0; first < args.parts; first += kWarp) {
    const Ints part = lane_id() + Ints(first), i = part + Ints(row * args.parts);
    const Bools in = part < Ints(args.parts);
    best.take(args.largest.load_if(in, i, -__builtin_huge_valf()), args.largest_tokens.load_if(in, i, -1));
  }
  return largest_of_lanes(best);
}

// The weights of tokens beside the largest one's, e^((logit - largest) / temperature). Tokens of +infinity
// share all mass. No logit is NaN.
SIMT_PART Doubles weights_of(Floats logits, float largest, double temperature) {
  if (largest == __builtin_huge_valf()) return select(logits == Floats(largest), Doubles(1.0), Doubles(0.0));
  const Doubles below = sub_rn(to_double(logits), to_double(Floats(largest)));
  return portable_exp_of(div_rn(below, Doubles(temperature)));
}

}  // namespace outrider::simt
