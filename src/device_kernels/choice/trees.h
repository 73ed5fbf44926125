// SPDX-License-Identifier: Apache-2.0
// Trees that a loop on a device drafts for its sequences, the rows of passes over them, and the walk from the
// root. A chain is a tree of width 1.
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

// Limits of a sequence's trees: levels, nodes below the root, children of a node (0: as the shape says).
enum TreeLimit : int { kMostLevels, kMostNodes, kMostChildren, kTreeLimits };

// The sequences of a loop between its steps, and their trees. Node 0 is the pending token.
struct Trees {
  Rows<int> pending;    // [sequences]
  Rows<int> positions;  // [sequences], of the pending tokens
  Rows<int> remaining;  // [sequences]: tokens that the sequence may still get; 0: nobody uses it
  Rows<int> limits;     // [kTreeLimits, sequences]
  Rows<int> accepted;   // [sequences]: drafts accepted by the last walk
  Rows<int> drafted;    // [sequences]: nodes below the root, or of the tree before until this one begins
  Rows<int> tokens;     // [nodes + 1, sequences], of the same tree
  Rows<int> parents;    // [nodes + 1, sequences]
  Rows<int> path;       // [levels + 1, sequences]: accepted nodes, the root first
  int sequences;
  int levels;  // 0: nothing is drafted
  int nodes;

  SIMT Ints limit(TreeLimit which, const Bools& in, Ints sequence) const {
    return limits.load_if(in, sequence + Ints(which * sequences), 0);
  }
  // The last token of a step is the target's, so one less than what remains is worth drafting.
  SIMT Ints wanted_levels(const Bools& in, Ints sequence) const {
    const Ints left = remaining.load_if(in, sequence, 0) - Ints(1), most = limit(kMostLevels, in, sequence);
    return select(left < most, left, most);
  }
  // The accepted node at this depth.
  SIMT Ints on_path(const Bools& in, Ints depth, Ints sequence) const {
    return path.load_if(in, depth * Ints(sequences) + sequence, 0);
  }
};

// Lists that a recorded pass reads, see RecordedRows of the models. A row that nobody uses has slot -1.
struct PassRows {
  Rows<int> tokens;
  Rows<int> positions;
  Rows<int> places;  // the positions of the tokens after the rows
  Rows<int> slots;
  Rows<int> entries;  // [rows, 4], see RowEntries
  Rows<int> tails;    // [rows, tail_size]
  List<int> pages;    // [sequences, pages_of_sequence]; -1: there is none
  int page_size;
  int pages_of_sequence;
  int tail_size;  // ancestors of a node with itself, at most
  int lag;        // a token has the entry of the position so many places before

  // The slot of an entry; -1: there is none.
  SIMT Ints slot_of(const Bools& in, Ints sequence, Ints entry) const {
    const Ints page = entry / Ints(page_size);
    const Bools has_place = in && entry >= Ints(0) && page < Ints(pages_of_sequence);
    const Ints found = pages.load_if(has_place, sequence * Ints(pages_of_sequence) + page, -1);
    return select(found >= Ints(0), found * Ints(page_size) + entry % Ints(page_size), Ints(-1));
  }

  // A token of a sequence at a position of its text. It has an entry, and sees so many first entries and so
  // many of its row's tail.
  struct Node {
    Ints sequence, token, position, entry, seen, in_tail;
  };
  // The rows' lanes get a node each, or nothing where they are not `used`.
  SIMT void put_node(const Bools& in, Ints row, const Bools& used, const Node& node) const {
    const Bools has = in && used;
    tokens.store_if(in, row, select(has, node.token, Ints(0)));
    positions.store_if(in, row, select(has, node.position - Ints(lag), Ints(0)));
    places.store_if(in, row, select(has, node.position + Ints(1), Ints(0)));
    slots.store_if(in, row, slot_of(has, node.sequence, node.entry));
    entries.store_if(in, row * Ints(4), node.sequence * Ints(pages_of_sequence));
    entries.store_if(in, row * Ints(4) + Ints(1), select(has, node.seen, Ints(0)));
    entries.store_if(in, row * Ints(4) + Ints(2), row * Ints(tail_size));
    entries.store_if(in, row * Ints(4) + Ints(3), select(has, node.in_tail, Ints(0)));
  }
  // As above, for tokens of the text, which see all entries before their own.
  SIMT void put(const Bools& in, Ints row, const Bools& used, Ints sequence, Ints token,
                Ints position) const {
    const Ints entry = position - Ints(lag);
    put_node(in, row, used, {sequence, token, position, entry, entry + Ints(1), Ints(0)});
  }
};

// The nodes of trees over their entries: entry numbers count from the root's own on.
struct TreeNodes {
  Rows<const int> parents;  // [nodes + 1, sequences]
  Rows<const int>
      entries;  // [nodes + 1, sequences]: -1: it has none; null: the entry of a node is its number
  int sequences;
  int levels;

  SIMT Ints entry_of(const Bools& in, Ints node, Ints sequence) const {
    return entries.is_null() ? node : entries.load_if(in, node * Ints(sequences) + sequence, -1);
  }
  SIMT Ints parent_of(const Bools& in, Ints node, Ints sequence) const {
    return parents.load_if(in, node * Ints(sequences) + sequence, 0);
  }
  SIMT Ints depth_of(const Bools& in, Ints node, Ints sequence) const {
    Ints depth(0);
    for (int level = 0; level < levels; ++level) {
      const Bools climbs = in && node > Ints(0);
      depth = depth + select(climbs, Ints(1), Ints(0));
      node = parent_of(climbs, node, sequence);
    }
    return depth;
  }
  // The rows' lanes get a node each, of a tree with its root at that position.
  SIMT void put(const PassRows& rows, const Bools& in, Ints row, const Bools& used, Ints sequence, Ints node,
                Ints token, Ints root) const {
    const Bools has = in && used;
    const Ints depth = depth_of(has, node, sequence), first = root - Ints(rows.lag);
    rows.put_node(
        in, row, used,
        {sequence, token, root + depth, first + entry_of(has, node, sequence), first + Ints(1), depth});
    Ints ancestor = node;
    for (int level = 1; level <= levels; ++level) {
      const Bools climbs = has && ancestor > Ints(0);
      rows.tails.store_if(climbs, row * Ints(rows.tail_size) + depth - Ints(level),
                          first + entry_of(climbs, ancestor, sequence));
      ancestor = parent_of(climbs, ancestor, sequence);
    }
  }
};

// The rows of the target's pass: all roots, then the first nodes of all sequences, and so on.
struct PlaceTreesArgs {
  Trees of;
  PassRows rows;  // [rows_of_pass()]

  struct TreeRows {
    Ints row, node, sequence;
    Bools in;
  };
  SIMT int rows_of_pass() const { return (of.nodes + 1) * of.sequences; }
  // A row for each lane.
  SIMT TreeRows rows_from(int first) const {
    const Ints row = lane_id() + Ints(first);
    return {row, row / Ints(of.sequences), row % Ints(of.sequences), row < Ints(rows_of_pass())};
  }
};

// A warp takes 32 rows.
SIMT int first_row_of(const Block& block) { return (block.index() * block.warps() + block.warp()) * kWarp; }

SIMT void place_trees(const Block& block, const PlaceTreesArgs& args) {
  const int first = first_row_of(block);
  if (first >= args.rows_of_pass()) return;
  block.wait_for_previous();
  const auto [row, node, sequence, in] = args.rows_from(first);
  const Bools is_draft = in && node > Ints(0);
  const Bools used = in && args.of.remaining.load_if(in, sequence, 0) > Ints(0) &&
                     node <= args.of.drafted.load_if(in, sequence, 0);
  const Ints draft = args.of.tokens.load_if(is_draft, row, 0),
             pending = args.of.pending.load_if(in, sequence, 0);
  const TreeNodes nodes{
      {args.of.parents.data, args.of.parents.count}, {nullptr, 0}, args.of.sequences, args.of.levels};
  nodes.put(args.rows, in, row, used, sequence, node, select(is_draft, draft, pending),
            args.of.positions.load_if(in, sequence, 0));
}

struct WalkTreesArgs {
  Trees of;
  Rows<const int> chosen;  // [(nodes + 1) * sequences]: the target's token after each node
};

// A warp takes a sequence: from the root on it follows the children that are the target's own tokens.
SIMT void walk_trees(const Block& block, const WalkTreesArgs& args) {
  const int sequence = block.index() * block.warps() + block.warp(), sequences = args.of.sequences;
  if (sequence >= sequences) return;
  block.wait_for_previous();
  const Bools is_first = lane_id() == Ints(0);
  const bool is_used = args.of.remaining.load_one(sequence) > 0;
  const int drafted = is_used ? args.of.drafted.load_one(sequence) : 0;
  int node = 0, accepted = 0;
  args.of.path.store_if(is_first, Ints(sequence), Ints(0));
  while (accepted < args.of.levels) {
    const Ints token(args.chosen.load_one(node * sequences + sequence));
    int child = 0;
    for (int first = node + 1; first <= drafted && child == 0; first += kWarp) {
      const Ints i = lane_id() + Ints(first), place = i * Ints(sequences) + Ints(sequence);
      const Bools in = i <= Ints(drafted);
      const Bools follows = in && args.of.parents.load_if(in, place, -1) == Ints(node) &&
                            args.of.tokens.load_if(in, place, -2) == token;
      child = shuffle(sum_lanes(select(follows, i, Ints(0)), kWarp), 0);  // no two siblings have one token
    }
    if (child == 0) break;
    node = child;
    ++accepted;
    args.of.path.store_if(is_first, Ints(accepted * sequences + sequence), Ints(node));
  }
  args.of.accepted.store_if(is_first, Ints(sequence), Ints(accepted));
}

// After a walk: the rows of accepted nodes get the slots of their places in the text, and all others none.
// One row for each row of the target's pass; a warp takes 32 of them.
SIMT void place_accepted(const Block& block, const PlaceTreesArgs& args) {
  const int first = first_row_of(block);
  if (first >= args.rows_of_pass()) return;
  block.wait_for_previous();
  const auto [row, node, sequence, in] = args.rows_from(first);
  const Bools used = in && args.of.remaining.load_if(in, sequence, 0) > Ints(0);
  const Ints accepted = args.of.accepted.load_if(used, sequence, -1);
  Ints depth(-1);
  for (int level = 0; level <= args.of.levels; ++level) {
    const Bools is_there = used && Ints(level) <= accepted;
    const Bools is_it = is_there && args.of.on_path(is_there, Ints(level), sequence) == node;
    depth = select(is_it, Ints(level), depth);
  }
  args.rows.put(in, row, depth >= Ints(0), sequence, Ints(0),
                args.of.positions.load_if(in, sequence, 0) + depth);
}

// The lists of rows without the entries before entry `first`, except that each row sees its own. As lists of
// EntryHiding, they have no prefix.
struct HideEntriesArgs {
  List<int> entries;       // [rows, 4], see RowEntries
  List<int> tails;         // of these; entries of a row rise
  Rows<int> seen_entries;  // [rows, 4]
  Rows<int> seen;          // [rows, most]
  int rows;
  int most;  // entries of a row
  int first;
};

// A warp takes a row.
SIMT void hide_entries(const Block& block, const HideEntriesArgs& args) {
  const int row = block.index() * block.warps() + block.warp();
  if (row >= args.rows) return;
  block.wait_for_previous();
  const int page = args.entries.load_one(4 * row), prefix = args.entries.load_one(4 * row + 1);
  const int tail = args.entries.load_one(4 * row + 2), tail_len = args.entries.load_one(4 * row + 3);
  int hidden = 0;  // of the tail
  while (hidden < tail_len && args.tails.load_one(tail + hidden) < args.first) ++hidden;
  int begin = args.first < prefix ? args.first : prefix;
  if (tail_len == 0 && begin == prefix && prefix > 0) begin = prefix - 1;
  if (tail_len > 0 && begin == prefix && hidden == tail_len) --hidden;
  const int from_prefix = prefix - begin, count = from_prefix + tail_len - hidden;
  const int place = row * args.most;
  for (int first = 0; first < count; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Bools in = i < Ints(count), in_tail = in && i >= Ints(from_prefix);
    const Ints of_tail = args.tails.load_if(in_tail, i + Ints(tail + hidden - from_prefix), 0);
    args.seen.store_if(in, i + Ints(place), select(in_tail, of_tail, i + Ints(begin)));
  }
  const Ints lane = lane_id();
  const Ints number =
      select(lane == Ints(0), Ints(page),
             select(lane == Ints(1), Ints(0), select(lane == Ints(2), Ints(place), Ints(count))));
  args.seen_entries.store_if(lane < Ints(4), lane + Ints(4 * row), number);
}

// After a walk: the entries of accepted nodes move to the places of their tokens, in all layers.
struct MoveEntriesArgs {
  Trees of;
  TreeNodes nodes;
  PassRows rows;          // their pages
  Rows<uint16_t> cache;   // all parts of a cache: keys and values of its layers
  List<uint64_t> begins;  // [parts]: numbers before the part
  List<int> entry_size;   // [parts]: numbers of an entry
  int parts;
};

// A warp takes a part of a sequence. A node's entry never lies before its place, and no move overwrites what
// a later one reads.
SIMT void move_entries(const Block& block, const MoveEntriesArgs& args) {
  const int item = block.index() * block.warps() + block.warp(), sequences = args.of.sequences;
  if (item >= sequences * args.parts) return;
  block.wait_for_previous();
  const int sequence = item / args.parts, part = item % args.parts;
  if (args.of.remaining.load_one(sequence) <= 0) return;
  const int accepted = args.of.accepted.load_one(sequence);
  const int root = args.of.positions.load_one(sequence) - args.rows.lag;
  const int size = args.entry_size.load_one(part);
  const auto begin = static_cast<int64_t>(args.begins.load_one(part));
  for (int depth = 1; depth <= accepted; ++depth) {
    const Ints node(args.of.path.load_one(depth * sequences + sequence));
    const int entry = shuffle(args.nodes.entry_of(true, node, Ints(sequence)), 0);
    if (entry <= depth) continue;  // it has none, or is there
    const int from = shuffle(args.rows.slot_of(true, Ints(sequence), Ints(root + entry)), 0);
    const int to = shuffle(args.rows.slot_of(true, Ints(sequence), Ints(root + depth)), 0);
    if (from < 0 || to < 0) continue;
    const auto source = args.cache.from(begin + static_cast<int64_t>(from) * size),
               target = args.cache.from(begin + static_cast<int64_t>(to) * size);
    for (int first = 0; first < size; first += kWarp) {
      const Ints i = lane_id() + Ints(first);
      const Bools in = i < Ints(size);
      target.store_if(in, i, source.load_if(in, i, 0));
    }
  }
}

}  // namespace outrider::simt
