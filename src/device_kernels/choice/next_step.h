// SPDX-License-Identifier: Apache-2.0
// The end of a step of a loop on a device: the drafts that the target chose, too, and its own token go to the
// host, and the next step begins with this token.
#pragma once

#include "device_kernels/choice/trees.h"

namespace outrider::simt {

// Words that control a loop.
enum LoopWord : int { kGoing, kSteps, kStepLimit, kStopCount, kLoopWords };
// Words of the ring, which the host reads while the loop runs. Then come the steps: of each, StepWord, the
// accepted nodes, and the tokens and the parents of all nodes, [step_words, sequences].
enum RingWord : int { kStepsDone, kHasEnded, kShallStop, kRingWords };
// Nodes drafted, drafts accepted, the target's own token after them.
enum StepWord : int { kDrafted, kAccepted, kOwnToken, kStepWords };
SIMT int step_words(int levels, int nodes) { return kStepWords + levels + 2 * nodes; }

// After walk_trees().
struct NextStepArgs {
  Rows<const int> chosen;  // [(nodes + 1) * sequences], as WalkTreesArgs; -1 ends the loop before this step
  Trees of;
  List<int> stops;  // pairs of a sequence and a token that ends the loop
  Rows<int> words;  // LoopWord
  Rows<int> ring;
};

// The target's token after the accepted node at this depth.
SIMT Ints own_token(const NextStepArgs& args, const Bools& in, Ints sequence, Ints depth) {
  const Ints node = args.of.on_path(in, depth, sequence);
  return args.chosen.load_if(in, node * Ints(args.of.sequences) + sequence, -1);
}

SIMT_PART bool has_all_tokens(const NextStepArgs& args) {
  Bools missing(false);
  for (int first = 0; first < args.of.sequences; first += kWarp) {
    const Ints sequence = lane_id() + Ints(first);
    const Bools in = sequence < Ints(args.of.sequences);
    const Bools used = in && args.of.remaining.load_if(in, sequence, 0) > Ints(0);
    const Ints own = own_token(args, used, sequence, args.of.accepted.load_if(used, sequence, 0));
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
    const Ints accepted = args.of.accepted.load_if(in, sequence, -1);
    for (int depth = 0; depth <= args.of.levels; ++depth) {
      const Bools is_there = in && Ints(depth) <= accepted;
      is_chosen = is_chosen || (is_there && own_token(args, is_there, sequence, Ints(depth)) == token);
    }
  }
  return any_lane(is_chosen);
}

// Tells the host of the step.
SIMT_PART void write_step(const NextStepArgs& args, const Bools& in, Ints sequence, int step) {
  const int sequences = args.of.sequences, levels = args.of.levels, nodes = args.of.nodes;
  const auto out = args.ring.from(kRingWords + int64_t{step} * step_words(levels, nodes) * sequences);
  const Ints accepted = args.of.accepted.load_if(in, sequence, 0),
             drafted = args.of.drafted.load_if(in, sequence, 0);
  out.store_if(in, sequence + Ints(kDrafted * sequences), drafted);
  out.store_if(in, sequence + Ints(kAccepted * sequences), accepted);
  out.store_if(in, sequence + Ints(kOwnToken * sequences), own_token(args, in, sequence, accepted));
  for (int depth = 1; depth <= levels; ++depth) {
    const Bools is_there = in && Ints(depth) <= accepted;
    out.store_if(is_there, sequence + Ints((kStepWords + depth - 1) * sequences),
                 args.of.on_path(is_there, Ints(depth), sequence));
  }
  for (int node = 1; node <= nodes; ++node) {
    const Bools is_there = in && Ints(node) <= drafted;
    const Ints from = Ints(node * sequences) + sequence;
    const Ints to = sequence + Ints((kStepWords + levels + node - 1) * sequences);
    out.store_if(is_there, to, args.of.tokens.load_if(is_there, from, -1));
    out.store_if(is_there, to + Ints(nodes * sequences), args.of.parents.load_if(is_there, from, 0));
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
    const Ints accepted = args.of.accepted.load_if(used, sequence, 0),
               position = args.of.positions.load_if(used, sequence, 0), left = remaining - accepted - Ints(1);
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
