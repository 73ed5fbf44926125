// SPDX-License-Identifier: Apache-2.0
// Chains that a loop on a device drafts for its sequences, and the rows of passes over them.
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

// The sequences of a loop between its steps, and their drafts.
struct Chains {
  Rows<int> pending;    // [sequences]
  Rows<int> positions;  // [sequences], of the pending tokens
  Rows<int> remaining;  // [sequences]: tokens that the sequence may still get; 0: nobody uses it
  Rows<int> limits;     // [sequences]: most levels of a chain
  Rows<int> accepted;   // [sequences]: drafts accepted in the step before
  Rows<int> drafted;    // [sequences]: levels of the chain, or of the one before until this one begins
  Rows<int> tokens;     // [levels, sequences], of the same chain
  int sequences;
  int levels;  // 0: nothing is drafted

  // The last token of a step is the target's, so one less than what remains is worth drafting.
  SIMT Ints wanted(const Bools& in, Ints sequence) const {
    const Ints left = remaining.load_if(in, sequence, 0) - Ints(1), limit = limits.load_if(in, sequence, 0);
    return select(left < limit, left, limit);
  }
};

// Lists that a recorded pass reads, see RecordedRows of the models. A row that nobody uses has slot -1.
struct PassRows {
  Rows<int> tokens;
  Rows<int> positions;
  Rows<int> places;  // the positions of the tokens after the rows
  Rows<int> slots;
  Rows<int> entries;  // [rows, 4], see RowEntries
  List<int> pages;    // [sequences, pages_of_sequence]; -1: there is none
  int page_size;
  int pages_of_sequence;
  int lag;  // a token has the entry of the position so many places before

  // The rows' lanes get a token of their sequence, which is at that position there, or nothing where they are
  // not `used`.
  SIMT void put(const Bools& in, Ints row, const Bools& used, Ints sequence, Ints token,
                Ints position) const {
    const Ints entry = position - Ints(lag);
    const Ints first_page = sequence * Ints(pages_of_sequence), page = entry / Ints(page_size);
    const Bools has_place = in && used && page < Ints(pages_of_sequence);
    const Ints found = pages.load_if(has_place, first_page + page, -1);
    const Ints slot = found * Ints(page_size) + entry % Ints(page_size);
    tokens.store_if(in, row, select(used, token, Ints(0)));
    positions.store_if(in, row, select(used, entry, Ints(0)));
    places.store_if(in, row, select(used, position + Ints(1), Ints(0)));
    slots.store_if(in, row, select(found >= Ints(0), slot, Ints(-1)));
    entries.store_if(in, row * Ints(4), first_page);
    entries.store_if(in, row * Ints(4) + Ints(1), select(used, entry + Ints(1), Ints(0)));
  }
};

// The rows of the target's pass: all pending tokens, then all first drafts, and so on.
struct PlaceChainsArgs {
  Chains of;
  PassRows rows;  // [(levels + 1) * sequences]
};

// One warp.
SIMT void place_chains(const Block& block, const PlaceChainsArgs& args) {
  block.wait_for_previous();
  const int sequences = args.of.sequences, rows = (args.of.levels + 1) * sequences;
  for (int first = 0; first < rows; first += kWarp) {
    const Ints row = lane_id() + Ints(first);
    const Bools in = row < Ints(rows);
    const Ints level = row / Ints(sequences), sequence = row % Ints(sequences);
    const Bools is_draft = in && level > Ints(0);
    const Bools used = in && args.of.remaining.load_if(in, sequence, 0) > Ints(0) &&
                       level <= args.of.drafted.load_if(in, sequence, 0);
    const Ints draft = args.of.tokens.load_if(is_draft, row - Ints(sequences), 0),
               pending = args.of.pending.load_if(in, sequence, 0);
    args.rows.put(in, row, used, sequence, select(is_draft, draft, pending),
                  args.of.positions.load_if(in, sequence, 0) + level);
  }
}

// A network that drafts chains. Its first pass has the rows of all pending tokens, then of the tokens before
// them, and so on, as far as they have no entries yet. A later pass has a draft of each sequence.
struct DraftChainsArgs {
  Chains of;
  PassRows rows;           // [blocks * sequences]
  PassRows features;       // [blocks * sequences]: places of features for the first pass; or no rows
  Rows<const int> chosen;  // [sequences]; -1: the chain ends
  Rows<int> going;         // one number: whether another level is drafted
  int blocks;
  // 1: entries of accepted drafts are computed anew, from the target's features; 0: only the entry of a last
  // draft, after which nothing was drafted, is missing.
  int reads_features;

  SIMT Ints missing(const Bools& in, Ints sequence) const {
    const Ints accepted = of.accepted.load_if(in, sequence, 0);
    if (reads_features != 0) return accepted;
    const Bools is_whole = accepted > Ints(0) && accepted == of.drafted.load_if(in, sequence, 0);
    return select(is_whole, Ints(1), Ints(0));
  }
};

// One warp. Before the first pass of a step.
SIMT void start_chains(const Block& block, const DraftChainsArgs& args) {
  block.wait_for_previous();
  const int sequences = args.of.sequences;
  Bools any(false);
  for (int first = 0; first < sequences; first += kWarp) {
    const Ints sequence = lane_id() + Ints(first);
    const Bools in = sequence < Ints(sequences);
    const Bools drafts = in && args.of.wanted(in, sequence) > Ints(0);
    const Ints position = args.of.positions.load_if(in, sequence, 0);
    const Ints accepted = args.of.accepted.load_if(in, sequence, 0), missing = args.missing(in, sequence);
    for (int back = 0; back < args.blocks; ++back) {
      const Ints row = sequence + Ints(back * sequences);
      const Bools used = drafts && Ints(back) <= missing;
      const Ints draft = (accepted - Ints(back)) * Ints(sequences) + sequence;
      const Ints token =
          back == 0 ? args.of.pending.load_if(used, sequence, 0) : args.of.tokens.load_if(used, draft, 0);
      args.rows.put(in, row, used, sequence, token, position - Ints(back));
      if (args.reads_features != 0) args.features.put(in, row, used, sequence, token, position - Ints(back));
    }
    args.of.drafted.store_if(in, sequence, Ints(0));
    any = any || drafts;
  }
  args.going.store_if(lane_id() == Ints(0), Ints(0), Ints(any_lane(any) ? 1 : 0));
}

// One warp. After the choices of a pass: the next level, and its rows.
SIMT void extend_chains(const Block& block, const DraftChainsArgs& args) {
  block.wait_for_previous();
  const int sequences = args.of.sequences;
  Bools any(false);
  for (int first = 0; first < sequences; first += kWarp) {
    const Ints sequence = lane_id() + Ints(first);
    const Bools in = sequence < Ints(sequences);
    const Ints token = args.chosen.load_if(in, sequence, -1);
    const Bools extends = args.rows.slots.load_if(in, sequence, -1) >= Ints(0) && token >= Ints(0);
    const Ints level = args.of.drafted.load_if(in, sequence, 0);
    args.of.tokens.store_if(extends, level * Ints(sequences) + sequence, token);
    args.of.drafted.store_if(extends, sequence, level + Ints(1));
    const Bools goes_on = extends && level + Ints(1) < args.of.wanted(in, sequence);
    args.rows.put(in, sequence, goes_on, sequence, token,
                  args.of.positions.load_if(in, sequence, 0) + level + Ints(1));
    any = any || goes_on;
  }
  args.going.store_if(lane_id() == Ints(0), Ints(0), Ints(any_lane(any) ? 1 : 0));
}

}  // namespace outrider::simt
