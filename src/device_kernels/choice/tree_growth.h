// SPDX-License-Identifier: Apache-2.0
// Growth of trees on a device: the nodes, scores and frontiers of TreeGrowth (speculation/tree).
#pragma once

#include "device_kernels/choice/first_tokens.h"
#include "device_kernels/choice/keep_likeliest.h"
#include "device_kernels/choice/trees.h"

namespace outrider::simt {

// Numbers of a sequence's growth: nodes below the root, nodes among them with entries, the depth of the
// frontier, and its nodes.
enum GrowthWord : int { kGrownNodes, kExpandedNodes, kFrontierDepth, kFrontierNodes, kGrowthWords };

// A table of nodes with equal children: how many each has, the place of the first child's row in the table,
// and how much further the next child's is.
enum ShapeWord : int { kChildren, kFirstChild, kNextChild, kShapeWords };

// Trees before they are cut, as Trees has them.
struct GrownTrees {
  Rows<int> tokens;     // [nodes + 1, sequences]
  Rows<int> parents;    // [nodes + 1, sequences]
  Rows<int> shapes;     // [nodes + 1, sequences]: rows of the table
  Rows<int> entries;    // [nodes + 1, sequences], see TreeNodes
  Rows<int> sources;    // [nodes + 1, sequences]: the row of the parent in the pass after it
  Rows<double> scores;  // [nodes + 1, sequences]: the products of probabilities on the paths
  Rows<int> words;      // [kGrowthWords, sequences]
  Rows<int> frontier;   // [width, sequences]
};

// Where states of entries lie, for a network whose rows go on from the state of the entry before.
struct CarriedRows {
  Rows<int>
      before;  // [blocks * sequences]: by row of a first pass, the place of the entry before; -1: no row
  List<int> firsts;  // [sequences]: the positions of the first pending tokens
  int of_sequence;   // places; the entry before the first pending token's has the first one

  SIMT void put(const Bools& in, Ints row, const Bools& used, Ints sequence, Ints position) const {
    const Ints entry = position - firsts.load_if(used, sequence, 0);
    before.store_if(in, row, select(used, sequence * Ints(of_sequence) + entry, Ints(-1)));
  }
};

// A network that drafts trees. Its first pass has the rows of all pending tokens, then of the tokens before
// them, and so on, as far as they have no entries yet. A later pass has the frontiers: the first nodes of all
// sequences, then the second ones, and so on.
struct DraftTreesArgs {
  Trees of;
  GrownTrees grown;
  Rows<int> entries;  // [nodes + 1, sequences]: of the nodes of `of`
  PassRows rows;      // [max(blocks, width) * sequences]
  PassRows features;  // [blocks * sequences]: places of features for the first pass; or no rows
  Rows<int> sources;  // [width * sequences]: by row of a later pass, its parent's row of the pass before
  ListFirstArgs first;
  List<int> shapes;  // [any, kShapeWords], the root's first
  Rows<int> going;   // one number: whether another level is drafted
  int blocks;
  int width;  // nodes of a frontier
  // 1: entries of accepted drafts are computed anew, from the target's features; 0: only the entry of a last
  // draft that was not expanded is missing.
  int reads_features;
  int drops;      // 1: the likeliest nodes are expanded, and kept in the end (DynamicTreePolicy)
  int rivals;     // tokens beyond the children that share the probability of coupled choices
  int is_shared;  // 1: a level has one row of logits for each sequence, whatever the path
  // [block_size * sequences]: the places of a block that one pass drafts, which see all of them, or see none
  // after them; or no rows.
  PassRows block = {}, causal_block = {};
  int block_size = 0;        // the pending token, and masks after it
  int mask = 0;              // their token
  CarriedRows carried = {};  // or no rows

  SIMT int word(GrowthWord which, int sequence) const {
    return grown.words.load_one(which * of.sequences + sequence);
  }
  SIMT void set_word(GrowthWord which, int sequence, int number) const {
    grown.words.store_if(lane_id() == Ints(0), Ints(which * of.sequences + sequence), Ints(number));
  }
  SIMT int place(int node, int sequence) const { return node * of.sequences + sequence; }
  SIMT int row_of(int index, int sequence) const {
    return is_shared != 0 ? sequence : place(index, sequence);
  }

  SIMT Ints missing(const Bools& in, Ints sequence) const {
    const Ints accepted = of.accepted.load_if(in, sequence, 0);
    if (reads_features != 0) return accepted;
    const Bools has_last = in && accepted > Ints(0);
    const Ints last = of.on_path(has_last, accepted, sequence);
    const Ints entry = entries.load_if(has_last, last * Ints(of.sequences) + sequence, 0);
    return select(entry < Ints(0), Ints(1), Ints(0));
  }
};

// The root of each sequence becomes the frontier of a tree that drafts.
SIMT void start_growth(const DraftTreesArgs& args, const Bools& in, Ints sequence, const Bools& drafts) {
  for (int which = 0; which < kGrowthWords; ++which) {
    const Ints number = which == kFrontierNodes ? select(drafts, Ints(1), Ints(0)) : Ints(0);
    args.grown.words.store_if(in, sequence + Ints(which * args.of.sequences), number);
  }
  args.grown.frontier.store_if(in, sequence, Ints(0));
  args.grown.parents.store_if(in, sequence, Ints(0));
  args.grown.shapes.store_if(in, sequence, Ints(0));
  args.grown.entries.store_if(in, sequence, Ints(0));
  if (args.drops != 0) args.grown.scores.store_if(in, sequence, Doubles(1.0));
  args.of.drafted.store_if(in, sequence, Ints(0));
}

// The rows of a block: all pending tokens, then the first masks of all sequences, and so on.
SIMT void put_block(const DraftTreesArgs& args, const Bools& in, Ints sequence, const Bools& drafts,
                    Ints position) {
  for (int place = 0; place < args.block_size; ++place) {
    const Ints row = sequence + Ints(place * args.of.sequences), at = position + Ints(place);
    const Ints token = place == 0 ? args.of.pending.load_if(drafts, sequence, 0) : Ints(args.mask);
    args.block.put_node(in, row, drafts,
                        {sequence, token, at, at, position + Ints(args.block_size), Ints(0)});
    args.causal_block.put_node(in, row, drafts, {sequence, token, at, at, at + Ints(1), Ints(0)});
  }
}

// One warp. Before the first pass of a step.
SIMT void start_trees(const Block& block, const DraftTreesArgs& args) {
  block.wait_for_previous();
  const int sequences = args.of.sequences;
  Bools any(false);
  for (int first = 0; first < sequences; first += kWarp) {
    const Ints sequence = lane_id() + Ints(first);
    const Bools in = sequence < Ints(sequences);
    const Bools drafts = in && args.of.wanted_levels(in, sequence) > Ints(0);
    const Ints position = args.of.positions.load_if(in, sequence, 0);
    const Ints accepted = args.of.accepted.load_if(in, sequence, 0), missing = args.missing(in, sequence);
    for (int back = 0; back < args.blocks; ++back) {
      const Ints row = sequence + Ints(back * sequences);
      const Bools used = drafts && Ints(back) <= missing, is_draft = used && Ints(back) > Ints(0);
      const Ints node = args.of.on_path(is_draft, accepted + Ints(1 - back), sequence);
      const Ints draft = args.of.tokens.load_if(is_draft, node * Ints(sequences) + sequence, 0);
      const Ints token = back == 0 ? args.of.pending.load_if(used, sequence, 0) : draft;
      args.rows.put(in, row, used, sequence, token, position - Ints(back));
      if (args.reads_features != 0) args.features.put(in, row, used, sequence, token, position - Ints(back));
      if (!args.carried.before.is_null()) args.carried.put(in, row, used, sequence, position - Ints(back));
    }
    put_block(args, in, sequence, drafts, position);
    start_growth(args, in, sequence, drafts);
    any = any || drafts;
  }
  args.going.store_if(lane_id() == Ints(0), Ints(0), Ints(any_lane(any) ? 1 : 0));
}

// Puts the first tokens of all parts of a row into the list of its first part, and their sum into its total.
SIMT_PART void merge_parts(const ListFirstArgs& args, int row) {
  const int item = row * args.choice.parts;
  FirstTokens first = args.load(item);
  for (int part = 1; part < args.choice.parts; ++part) {
    const FirstTokens other = args.load(item + part);
    const FirstTokens last = {Doubles(shuffle(first.key, args.count - 1)),
                              Ints(shuffle(first.token, args.count - 1))};
    if (any_lane(other.comes_before(last))) first = first_of_both(first, other);
  }
  args.store(item, first);
  if (args.sums.is_null() || args.choice.mode(row) != kGreedy) return;
  const double total = sum_in_order(args.sums.from(item), args.choice.parts);
  args.choice.totals.store_if(lane_id() == Ints(0), Ints(row), Doubles(total));
}

// The children of a node: a token of each of the first lanes, with its probability.
struct ChildTokens {
  Ints token;
  Doubles probability;
  Bools found;
};

// Keys are shares with the other sign.
SIMT Doubles probability_of_key(Doubles key) {
  constexpr double kMostCertain = 1.0 - 1e-9;  // as TreeGrowth has it
  const Doubles share = sub_rn(Doubles(0.0), key), most(kMostCertain);
  return select(share < most, share, most);
}

// The likeliest tokens by their shares of all weights. Equal shares are in the order of the tokens.
SIMT_PART ChildTokens likeliest_children(const ListFirstArgs& args, int row, const FirstTokens& first,
                                         int count) {
  const Bools among = first.is_token() && lane_id() < Ints(count);
  if (args.sums.is_null()) return {first.token, Doubles(1.0), among};
  const Floats logits = to_float(sub_rn(Doubles(0.0), select(among, first.key, Doubles(0.0))));
  const float largest = shuffle(logits, 0);
  const Doubles weights = weights_of(logits, largest, args.ranking);
  const Bools counts = among && weights >= Doubles(0x1p-1022);
  const Doubles shares = div_rn(weights, Doubles(args.choice.totals.load_one(row)));
  const FirstTokens sorted =
      in_order({select(counts, sub_rn(Doubles(0.0), shares), Doubles(__builtin_huge_val())),
                select(counts, first.token, Ints(FirstTokens::kNone))});
  return {sorted.token, probability_of_key(sorted.key), sorted.is_token()};
}

// The likeliest of the tokens that truncation keeps.
SIMT_PART ChildTokens kept_children(const FirstTokens& first, int count) {
  return {first.token, probability_of_key(first.key), first.is_token() && lane_id() < Ints(count)};
}

// The first arrivals, and the softmax of log q + g over them and their rivals.
SIMT_PART ChildTokens coupled_children(const FirstTokens& first, int count, int rivals) {
  const Bools arrives = first.is_token() && lane_id() < Ints(count + rivals);
  const Bools is_child = arrives && lane_id() < Ints(count);
  if (rivals == 0) return {first.token, Doubles(1.0), is_child};
  const Doubles rates = div_rn(Doubles(1.0), select(arrives, first.key, Doubles(1.0)));
  double sum = 0.0;
  for (int lane = 0; lane < count_lanes(arrives); ++lane) sum = add_rn(sum, shuffle(rates, lane));
  const Doubles share = div_rn(Doubles(1.0), mul_rn(select(arrives, first.key, Doubles(1.0)), Doubles(sum)));
  const Bools is_share = share > Doubles(0.0) && share <= Doubles(1.0);
  return {first.token, select(is_share, share, Doubles(1.0)), is_child};
}

// Adds the children of a node of the frontier behind `count` nodes. Returns the number of nodes then.
SIMT_PART int expand_node(const DraftTreesArgs& args, int sequence, int index, int count) {
  const int sequences = args.of.sequences, row = args.row_of(index, sequence);
  const int node = args.grown.frontier.load_one(args.place(index, sequence));
  const int shape = args.grown.shapes.load_one(args.place(node, sequence)) * kShapeWords;
  const int most = args.of.limits.load_one(kMostChildren * sequences + sequence);
  int wanted = args.shapes.load_one(shape + kChildren);
  if (most > 0 && most < wanted) wanted = most;
  const int room = args.of.limits.load_one(kMostNodes * sequences + sequence) - count;
  if (args.drops == 0 && room < wanted) wanted = room;
  if (wanted <= 0) return count;
  const FirstTokens first = args.first.load(row * args.first.choice.parts);
  const int mode = args.first.choice.mode(row);
  const ChildTokens children = mode == kGreedy            ? likeliest_children(args.first, row, first, wanted)
                               : mode == kLikeliestOfKept ? kept_children(first, wanted)
                                                          : coupled_children(first, wanted, args.rivals);
  const Ints place = (lane_id() + Ints(count + 1)) * Ints(sequences) + Ints(sequence);
  const Ints rows_of_shape = lane_id() * Ints(args.shapes.load_one(shape + kNextChild)) +
                             Ints(args.shapes.load_one(shape + kFirstChild));
  args.grown.tokens.store_if(children.found, place, children.token);
  args.grown.parents.store_if(children.found, place, Ints(node));
  args.grown.shapes.store_if(children.found, place, rows_of_shape);
  args.grown.entries.store_if(children.found, place, Ints(-1));
  args.grown.sources.store_if(children.found, place, Ints(row));
  if (args.drops != 0) {
    const Doubles score(args.grown.scores.load_one(args.place(node, sequence)));
    args.grown.scores.store_if(children.found, place, mul_rn(score, children.probability));
  }
  return count + count_lanes(children.found);
}

// The likeliest nodes from `begin` to `end` become the frontier. Returns how many.
SIMT_PART int likeliest_frontier(const DraftTreesArgs& args, int sequence, int begin, int end) {
  Podium podium{no_tokens(), args.width};
  for (int first = begin; first <= end; first += kWarp) {
    const Ints node = lane_id() + Ints(first);
    const Bools in = node <= Ints(end);
    const Doubles score = args.grown.scores.load_if(in, node * Ints(args.of.sequences) + Ints(sequence), 0.0);
    podium.enter({select(in, sub_rn(Doubles(0.0), score), Doubles(__builtin_huge_val())),
                  select(in, node, Ints(FirstTokens::kNone))});
  }
  const Bools is_kept = podium.first.is_token() && lane_id() < Ints(args.width);
  args.grown.frontier.store_if(is_kept, lane_id() * Ints(args.of.sequences) + Ints(sequence),
                               podium.first.token);
  return count_lanes(is_kept);
}

// All nodes from `begin` to `end` that may have children become the frontier. Returns how many.
SIMT_PART int whole_frontier(const DraftTreesArgs& args, int sequence, int begin, int end) {
  const int sequences = args.of.sequences;
  int count = 0;
  for (int first = begin; first <= end; first += kWarp) {
    const Ints node = lane_id() + Ints(first);
    const Bools in = node <= Ints(end);
    const Ints shape = args.grown.shapes.load_if(in, node * Ints(sequences) + Ints(sequence), 0);
    const Bools has_children =
        in && args.shapes.load_if(in, shape * Ints(kShapeWords) + Ints(kChildren), 0) > Ints(0);
    const Ints place = (count_before(has_children) + Ints(count)) * Ints(sequences) + Ints(sequence);
    args.grown.frontier.store_if(has_children, place, node);
    count += count_lanes(has_children);
  }
  return count;
}

// The rows of a frontier get the nodes' entries, behind all entries before.
SIMT_PART void put_frontier(const Block& block, const DraftTreesArgs& args, int sequence, int count) {
  const int sequences = args.of.sequences, expanded = args.word(kExpandedNodes, sequence);
  const int root = args.of.positions.load_one(sequence);
  const TreeNodes nodes{{args.grown.parents.data, args.grown.parents.count},
                        {args.grown.entries.data, args.grown.entries.count},
                        sequences,
                        args.of.levels};
  for (int first = 0; first < args.width; first += kWarp) {
    const Ints index = lane_id() + Ints(first), row = index * Ints(sequences) + Ints(sequence);
    const Bools in = index < Ints(args.width), used = in && index < Ints(count);
    const Ints node = args.grown.frontier.load_if(used, row, 0);
    const Ints place = node * Ints(sequences) + Ints(sequence);
    args.grown.entries.store_if(used, place, index + Ints(expanded + 1));
    args.sources.store_if(in, row, select(used, args.grown.sources.load_if(used, place, 0), Ints(-1)));
    block.sync_warp();
    nodes.put(args.rows, in, row, used, Ints(sequence), node, args.grown.tokens.load_if(used, place, 0),
              Ints(root));
  }
  args.set_word(kExpandedNodes, sequence, expanded + count);
}

// The next level of a sequence's tree, and the frontier after it.
SIMT_PART void grow_tree(const Block& block, const DraftTreesArgs& args, int sequence) {
  const int before = args.word(kGrownNodes, sequence), frontier = args.word(kFrontierNodes, sequence);
  const int depth = args.word(kFrontierDepth, sequence) + 1, sequences = args.of.sequences;
  int count = before;
  for (int index = 0; index < frontier; ++index) count = expand_node(args, sequence, index, count);
  block.sync_warp();
  const int levels = shuffle(args.of.wanted_levels(true, Ints(sequence)), 0);
  const bool is_full = args.drops == 0 && count >= args.of.limits.load_one(kMostNodes * sequences + sequence);
  int next = 0;
  if (count > before && depth < levels && !is_full) {
    next = args.drops != 0 ? likeliest_frontier(args, sequence, before + 1, count)
                           : whole_frontier(args, sequence, before + 1, count);
  }
  args.set_word(kGrownNodes, sequence, count);
  args.set_word(kFrontierDepth, sequence, depth);
  args.set_word(kFrontierNodes, sequence, next);
  if (args.drops == 0) args.of.drafted.store_if(lane_id() == Ints(0), Ints(sequence), Ints(count));
  block.sync_warp();
  put_frontier(block, args, sequence, next);
}

// One block. After the lists of a pass: the next level, and its rows.
SIMT void grow_trees(const Block& block, const DraftTreesArgs& args) {
  block.wait_for_previous();
  const int sequences = args.of.sequences, lists = (args.is_shared != 0 ? 1 : args.width) * sequences;
  for (int row = block.warp(); row < lists; row += block.warps())
    if (row / sequences < args.word(kFrontierNodes, row % sequences)) merge_parts(args.first, row);
  block.sync();
  for (int sequence = block.warp(); sequence < sequences; sequence += block.warps())
    grow_tree(block, args, sequence);
  block.sync();
  if (block.warp() != 0) return;
  Bools any(false);
  for (int first = 0; first < sequences; first += kWarp) {
    const Ints sequence = lane_id() + Ints(first);
    const Bools in = sequence < Ints(sequences);
    const Ints frontier = args.grown.words.load_if(in, sequence + Ints(kFrontierNodes * sequences), 0);
    any = any || frontier > Ints(0);
  }
  args.going.store_if(lane_id() == Ints(0), Ints(0), Ints(any_lane(any) ? 1 : 0));
}

// How many of a sequence's grown nodes are likelier than each lane's, or as likely and older.
SIMT_PART Ints rank_of(const DraftTreesArgs& args, int sequence, int count, Ints node, Doubles score) {
  Ints rank(0);
  for (int first = 1; first <= count; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Doubles scores =
        args.grown.scores.load_if(i <= Ints(count), i * Ints(args.of.sequences) + Ints(sequence), 0.0);
    for (int lane = 0; lane < kWarp && first + lane <= count; ++lane) {
      const Doubles other(shuffle(scores, lane));
      const Bools is_before = other > score || (other == score && Ints(first + lane) < node);
      rank = rank + select(is_before, Ints(1), Ints(0));
    }
  }
  return rank;
}

// Gives the kept nodes their new numbers, and writes the tree that the target gets. Ranks lie in `shapes`,
// which get the new numbers; nodes that are not kept get -1. A node's parent is kept and comes before it.
SIMT_PART void write_kept_nodes(const Block& block, const DraftTreesArgs& args, int sequence, int count,
                                int most) {
  const int sequences = args.of.sequences;
  int kept = 0;
  for (int first = 1; first <= count; first += kWarp) {
    const Ints node = lane_id() + Ints(first), place = node * Ints(sequences) + Ints(sequence);
    const Bools in = node <= Ints(count);
    const Bools is_kept = in && args.grown.shapes.load_if(in, place, most) < Ints(most);
    const Ints number = count_before(is_kept) + Ints(kept + 1);
    const Ints to = number * Ints(sequences) + Ints(sequence);
    args.grown.shapes.store_if(in, place, select(is_kept, number, Ints(-1)));
    block.sync_warp();
    const Ints parent = args.grown.parents.load_if(is_kept, place, 0);
    const Ints new_parent = args.grown.shapes.load_if(is_kept, parent * Ints(sequences) + Ints(sequence), 0);
    args.of.tokens.store_if(is_kept, to, args.grown.tokens.load_if(is_kept, place, 0));
    args.of.parents.store_if(is_kept, to, new_parent);
    args.entries.store_if(is_kept, to, args.grown.entries.load_if(is_kept, place, -1));
    kept += count_lanes(is_kept);
  }
  args.of.drafted.store_if(lane_id() == Ints(0), Ints(sequence), Ints(kept));
}

// A block takes a sequence: its likeliest nodes are the tree that the target gets, in the order of growth.
SIMT void cut_trees(const Block& block, const DraftTreesArgs& args) {
  const int sequence = block.index(), sequences = args.of.sequences;
  block.wait_for_previous();
  const int count = args.word(kGrownNodes, sequence);
  const int most = args.of.limits.load_one(kMostNodes * sequences + sequence);
  for (int first = 1 + block.warp() * kWarp; first <= count; first += block.warps() * kWarp) {
    const Ints node = lane_id() + Ints(first), place = node * Ints(sequences) + Ints(sequence);
    const Bools in = node <= Ints(count);
    const Ints rank = rank_of(args, sequence, count, node, args.grown.scores.load_if(in, place, 0.0));
    args.grown.shapes.store_if(in, place, rank);
  }
  block.sync();
  if (block.warp() == 0) write_kept_nodes(block, args, sequence, count, most);
}

}  // namespace outrider::simt
