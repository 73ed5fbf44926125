// SPDX-License-Identifier: Apache-2.0
// The end of a step of a loop on a device: chosen tokens go to the host, and are the inputs of the next step.
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

// Words that control a loop.
enum LoopWord : int { kGoing, kSteps, kStepLimit, kStopCount, kLoopWords };
// Words of the ring, which the host reads while the loop runs. Then come the tokens, [steps, rows].
enum RingWord : int { kStepsDone, kHasEnded, kShallStop, kRingWords };

struct NextStepArgs {
  Rows<const int> chosen;  // [rows]; -1 ends the loop before this step
  Rows<int> tokens;        // [rows]
  Rows<int> positions;     // [rows], of the tokens
  Rows<int> places;        // [rows], of the tokens to be chosen
  Rows<int> slots;         // [rows]; -1: nobody uses the row
  Rows<int> entries;       // [rows, 4], see RowEntries
  List<int> pages;         // [rows, pages]; -1: there is none
  List<int> stops;         // pairs of a row and a token that ends the loop
  Rows<int> words;         // LoopWord
  Rows<int> ring;
  int rows;
  int page_size;
  int pages_of_row;
};

SIMT_PART bool has_all_tokens(const NextStepArgs& args) {
  Bools missing(false);
  for (int first = 0; first < args.rows; first += kWarp) {
    const Ints row = lane_id() + Ints(first);
    const Bools in = row < Ints(args.rows);
    missing =
        missing || (args.slots.load_if(in, row, -1) >= Ints(0) && args.chosen.load_if(in, row, 0) < Ints(0));
  }
  return !any_lane(missing);
}

SIMT_PART bool is_stop_chosen(const NextStepArgs& args) {
  const int count = args.words.load_one(kStopCount);
  Bools is_chosen(false);
  for (int first = 0; first < count; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Bools in = i < Ints(count);
    const Ints row = args.stops.load_if(in, i * Ints(2), 0),
               token = args.stops.load_if(in, i * Ints(2) + Ints(1), -2);
    is_chosen = is_chosen || args.chosen.load_if(in, row, -1) == token;
  }
  return any_lane(is_chosen);
}

// Each row goes one token on.
SIMT_PART void advance_rows(const NextStepArgs& args, int step) {
  const auto out = args.ring.from(kRingWords + static_cast<int64_t>(step) * args.rows);
  for (int first = 0; first < args.rows; first += kWarp) {
    const Ints row = lane_id() + Ints(first);
    const Bools in = row < Ints(args.rows);
    const Bools used = in && args.slots.load_if(in, row, -1) >= Ints(0);
    const Ints token = args.chosen.load_if(used, row, -1),
               position = args.positions.load_if(used, row, 0) + Ints(1);
    out.store_if(in, row, token);
    args.tokens.store_if(used, row, token);
    args.positions.store_if(used, row, position);
    args.places.store_if(used, row, position + Ints(1));
    args.entries.store_if(used, row * Ints(4) + Ints(1), position + Ints(1));
    const Ints page_of_row = position / Ints(args.page_size);
    const Bools has_page = used && page_of_row < Ints(args.pages_of_row);
    const Ints page = args.pages.load_if(has_page, row * Ints(args.pages_of_row) + page_of_row, -1);
    args.slots.store_if(used, row, page * Ints(args.page_size) + position % Ints(args.page_size));
  }
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
  const bool is_last =
      done >= args.words.load_one(kStepLimit) || is_stop_chosen(args) || args.ring.observe(kShallStop) != 0;
  advance_rows(args, step);
  args.words.store_if(is_first, Ints(kSteps), Ints(done));
  args.words.store_if(is_first, Ints(kGoing), Ints(is_last ? 0 : 1));
  args.ring.publish(kStepsDone, done);
  if (is_last) args.ring.publish(kHasEnded, 1);
}

}  // namespace outrider::simt
