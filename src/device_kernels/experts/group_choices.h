// SPDX-License-Identifier: Apache-2.0
// The choices of all rows, sorted by expert. Every choice has a place. An expert's places begin at a multiple
// of eight, which are the rows of a tile of products.
#pragma once

#include "device_kernels/products/group_codes.h"
#include "device_kernels/rows/row_part.h"

namespace outrider::simt {

struct GroupChoicesArgs {
  Rows<const int> experts;    // [choices]; -1: none
  Rows<const float> weights;  // [choices]
  Rows<int> counts;           // [expert_count]: choices of each expert
  Rows<int> tiles;            // [tile_count]: the expert of each tile, or -1
  Rows<int> rows;             // [8 * tile_count]: the row of each place, or -1
  Rows<float> place_weights;  // [8 * tile_count], of places with a row
  Rows<int> places;           // [choices]; -1: of no expert
  int choices;
  int used;  // choices of a row
  int expert_count;
  int tile_count;
};

SIMT Ints tiles_of(Ints choices) { return (choices + Ints(kTileRows - 1)) >> Ints(3); }

// A warp counts the choices of an expert.
SIMT void count_choices(const Block& block, const GroupChoicesArgs& args) {
  const int expert = block.index() * block.warps() + block.warp();
  if (expert >= args.expert_count) return;
  block.wait_for_previous();
  Ints count(0);
  for (int first = 0; first < args.choices; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Ints chosen = args.experts.load_if(i < Ints(args.choices), i, -1);
    count = count + select(chosen == Ints(expert), Ints(1), Ints(0));
  }
  args.counts.store_if(lane_id() == Ints(0), Ints(expert), sum_lanes(count, kWarp));
}

// The tiles of the experts before one.
SIMT_PART int tiles_before(const GroupChoicesArgs& args, int expert) {
  Ints tiles(0);
  for (int first = 0; first < expert; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    tiles = tiles + tiles_of(args.counts.load_if(i < Ints(expert), i, 0));
  }
  return shuffle(sum_lanes(tiles, kWarp), 0);
}

// Tiles [begin, end) belong to the expert; their places from `used` on have no row.
SIMT_PART void fill_tiles(const GroupChoicesArgs& args, int begin, int end, int used, int expert) {
  for (int first = begin; first < end; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    args.tiles.store_if(i < Ints(end), i, Ints(expert));
  }
  for (int first = begin * kTileRows + used; first < end * kTileRows; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    args.rows.store_if(i < Ints(end * kTileRows), i, Ints(-1));
  }
}

// Marks what no expert has: tiles from `begin` on, and choices.
SIMT_PART void place_nothing(const GroupChoicesArgs& args, int begin) {
  fill_tiles(args, begin, args.tile_count, 0, -1);
  for (int first = 0; first < args.choices; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Bools in = i < Ints(args.choices);
    args.places.store_if(in && args.experts.load_if(in, i, 0) < Ints(0), i, Ints(-1));
  }
}

// A warp places the choices of an expert; one more warp takes what no expert has.
SIMT void place_choices(const Block& block, const GroupChoicesArgs& args) {
  const int expert = block.index() * block.warps() + block.warp();
  if (expert > args.expert_count) return;
  block.wait_for_previous();
  const int begin = tiles_before(args, expert);
  if (expert == args.expert_count) return place_nothing(args, begin);
  const int count = args.counts.load_one(expert);
  fill_tiles(args, begin, begin + (count + kTileRows - 1) / kTileRows, count, expert);
  int next = begin * kTileRows;
  for (int first = 0; first < args.choices; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Bools in = i < Ints(args.choices);
    const Bools is_own = in && args.experts.load_if(in, i, -1) == Ints(expert);
    const LaneSums own = lane_sums(select(is_own, Ints(1), Ints(0)));
    const Ints place = own.before + Ints(next);
    args.places.store_if(is_own, i, place);
    args.rows.store_if(is_own, place, i / Ints(args.used));
    args.place_weights.store_if(is_own, place, args.weights.load_if(is_own, i, 0.0F));
    next += shuffle(own.all, 0);
  }
}

// y[row] = the sum of weight * x[place] over the row's choices, in their order; 0 where it has none.
struct WeightedSumsArgs {
  Rows<const float> x;        // [places, dim]
  Rows<const int> places;     // [rows, used]; -1: the row has none
  Rows<const float> weights;  // [rows, used], or null: 1
  Rows<float> y;              // [rows, dim]
  int rows;
  int used;
  int dim;
};

// A warp takes 32 numbers of a row.
SIMT void weighted_sums(const Block& block, const WeightedSumsArgs& args) {
  const auto [row, i, in] = row_part_of(block, args.rows, args.dim);
  if (row < 0) return;
  block.wait_for_previous();
  const int64_t first = static_cast<int64_t>(row) * args.used;
  Floats sum(0.0F);
  for (int choice = 0; choice < args.used; ++choice) {
    const int64_t place = args.places.load_one(first + choice);
    if (place < 0) break;
    Floats number = args.x.from(place * args.dim).load_if(in, i, 0.0F);
    if (!args.weights.is_null()) number = mul_rn(Floats(args.weights.load_one(first + choice)), number);
    sum = choice == 0 ? number : add_rn(sum, number);
  }
  args.y.from(static_cast<int64_t>(row) * args.dim).store_if(in, i, sum);
}

}  // namespace outrider::simt
