// SPDX-License-Identifier: Apache-2.0
// The end of a step of a loop on a device: the drafts that the target chose, too, and its own token go to the
// host, and the next step begins with this token.
#pragma once

#include "device_kernels/choice/chains.h"

namespace outrider::simt {

// Words that control a loop.
enum LoopWord : int { kGoing, kSteps, kStepLimit, kStopCount, kLoopWords };
// Words of the ring, which the host reads while the loop runs. Then come the steps: of each, StepWord and the
// drafts, [kStepWords + levels, sequences].
enum RingWord : int { kStepsDone, kHasEnded, kShallStop, kRingWords };
// Levels drafted, drafts accepted, the target's own token after them.
enum StepWord : int { kDrafted, kAccepted, kOwnToken, kStepWords };

struct NextStepArgs {
  Rows<const int>
      chosen;  // [(levels + 1) * sequences], as PlaceChainsArgs; -1 ends the loop before this step
  Chains of;
  List<int> stops;  // pairs of a sequence and a token that ends the loop
  Rows<int> words;  // LoopWord
  Rows<int> ring;
};

// How many drafts of the sequence are the target's own tokens, one after the other.
SIMT_PART Ints accepted_of(const NextStepArgs& args, const Bools& in, Ints sequence) {
  const Ints drafted = args.of.drafted.load_if(in, sequence, 0);
  Ints accepted(0);
  Bools walks = in;
  for (int level = 0; level < args.of.levels; ++level) {
    const Ints row = Ints(level * args.of.sequences) + sequence;
    walks = walks && Ints(level) < drafted &&
            args.chosen.load_if(in, row, -1) == args.of.tokens.load_if(in, row, -2);
    accepted = accepted + select(walks, Ints(1), Ints(0));
  }
  return accepted;
}

// The target's token after `accepted` drafts.
SIMT Ints own_token(const NextStepArgs& args, const Bools& in, Ints sequence, Ints accepted) {
  return args.chosen.load_if(in, accepted * Ints(args.of.sequences) + sequence, -1);
}

SIMT_PART bool has_all_tokens(const NextStepArgs& args) {
  Bools missing(false);
  for (int first = 0; first < args.of.sequences; first += kWarp) {
    const Ints sequence = lane_id() + Ints(first);
    const Bools in = sequence < Ints(args.of.sequences);
    const Bools used = args.of.remaining.load_if(in, sequence, 0) > Ints(0);
    const Ints own = own_token(args, used, sequence, accepted_of(args, used, sequence));
    missing = missing || (used && own < Ints(0));
  }
  return !any_lane(missing);
}

SIMT_PART bool is_stop_chosen(const NextStepArgs& args) {
  const int count = args.words.load_one(kStopCount);
  Bools is_chosen(false);
  for (int first = 0; first < count; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Bools in = i < Ints(count);
    const Ints sequence = args.stops.load_if(in, i * Ints(2), 0),
               token = args.stops.load_if(in, i * Ints(2) + Ints(1), -2);
    const Ints accepted = accepted_of(args, in, sequence);
    for (int level = 0; level <= args.of.levels; ++level)
      is_chosen =
          is_chosen || (Ints(level) <= accepted && own_token(args, in, sequence, Ints(level)) == token);
  }
  return any_lane(is_chosen);
}

// Tells the host of the step.
SIMT_PART void write_step(const NextStepArgs& args, const Bools& in, Ints sequence, int step) {
  const int sequences = args.of.sequences;
  const int64_t words = int64_t{kStepWords + args.of.levels} * sequences;
  const auto out = args.ring.from(kRingWords + step * words);
  const Ints accepted = accepted_of(args, in, sequence), drafted = args.of.drafted.load_if(in, sequence, 0);
  out.store_if(in, sequence + Ints(kDrafted * sequences), drafted);
  out.store_if(in, sequence + Ints(kAccepted * sequences), accepted);
  out.store_if(in, sequence + Ints(kOwnToken * sequences), own_token(args, in, sequence, accepted));
  for (int level = 0; level < args.of.levels; ++level) {
    const Bools is_drafted = in && Ints(level) < drafted;
    out.store_if(is_drafted, sequence + Ints((kStepWords + level) * sequences),
                 args.of.tokens.load_if(is_drafted, Ints(level * sequences) + sequence, -1));
  }
}

// Each sequence goes on after its tokens. False: one of them has got all that it may get.
SIMT_PART bool advance(const NextStepArgs& args, int step) {
  Bools is_full(false);
  for (int first = 0; first < args.of.sequences; first += kWarp) {
    const Ints sequence = lane_id() + Ints(first);
    const Bools in = sequence < Ints(args.of.sequences);
    const Ints remaining = args.of.remaining.load_if(in, sequence, 0);
    const Bools used = in && remaining > Ints(0);
    write_step(args, in, sequence, step);
    const Ints accepted = accepted_of(args, used, sequence),
               position = args.of.positions.load_if(used, sequence, 0), left = remaining - accepted - Ints(1);
    args.of.accepted.store_if(used, sequence, accepted);
    args.of.pending.store_if(used, sequence, own_token(args, used, sequence, accepted));
    args.of.positions.store_if(used, sequence, position + accepted + Ints(1));
    args.of.remaining.store_if(used, sequence, left);
    is_full = is_full || (used && left <= Ints(0));
  }
  return !any_lane(is_full);
}

// One warp.
SIMT void next_step(const Block& block, const NextStepArgs& args) {
  block.wait_for_previous();
  const Bools is_first = lane_id() == Ints(0);
  if (!has_all_tokens(args)) {
    args.words.store_if(is_first, Ints(kGoing), Ints(0));
    return args.ring.publish(kHasEnded, 1);
  }
  const int step = args.words.load_one(kSteps), done = step + 1;
  const bool ends =
      done >= args.words.load_one(kStepLimit) || is_stop_chosen(args) || args.ring.observe(kShallStop) != 0;
  const bool is_last = !advance(args, step) || ends;
  args.words.store_if(is_first, Ints(kSteps), Ints(done));
  args.words.store_if(is_first, Ints(kGoing), Ints(is_last ? 0 : 1));
  args.ring.publish(kStepsDone, done);
  if (is_last) args.ring.publish(kHasEnded, 1);
}

}  // namespace outrider::simt
