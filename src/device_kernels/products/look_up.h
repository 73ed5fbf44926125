// SPDX-License-Identifier: Apache-2.0
// Rows of tables, by the numbers of tokens, with the numbers of unpack_row() (kernels/packed_matrix.h).
#pragma once

#include "device_kernels/products/channel_products.h"
#include "device_kernels/products/float_products.h"

namespace outrider::simt {

struct LookedUp {
  Rows<const int> tokens;  // [rows]
  Rows<float> y;           // [rows, k]
  int rows;
  int k;
  float factor;  // of all numbers
};

struct GroupedTableArgs {
  GroupedWeights table;
  LookedUp of;
};
struct ChannelTableArgs {
  ChannelWeights table;
  LookedUp of;
};
template <typename Numbers>
struct FloatTableArgs {
  Weights<typename Numbers::Stored> table;  // [panels][k][panel]
  LookedUp of;
  int panel;  // features of a panel
};
using F32TableArgs = FloatTableArgs<F32Weights>;
using F16TableArgs = FloatTableArgs<F16Weights>;
using Bf16TableArgs = FloatTableArgs<Bf16Weights>;
// A table as stored: x = scale * code - min.
struct CodeTableArgs {
  Weights<int8_t> codes;  // [n, k]
  Weights<float> scales;  // [n, k / group]
  Weights<float> mins;    // the same, or null
  LookedUp of;
  int group;
};

// A warp takes a chunk of a row.
struct TableChunk {
  int row, chunk, token;
  bool is_there;
};
SIMT TableChunk table_chunk(const Block& block, const LookedUp& of) {
  const int chunks = (of.k + kChunk - 1) / kChunk, item = block.index() * block.warps() + block.warp();
  if (item >= of.rows * chunks) return {0, 0, 0, false};
  block.wait_for_previous();
  return {item / chunks, item % chunks, of.tokens.load_one(item / chunks), true};
}

SIMT void put_chunk(const LookedUp& of, const TableChunk& place, Floats numbers) {
  const Ints i = lane_id() + Ints(place.chunk * kChunk);
  const auto row = of.y.from(static_cast<int64_t>(place.row) * of.k);
  row.store_if(i < Ints(of.k), i, mul_rn(numbers, Floats(of.factor)));
}

// The word, among the 128 of a tile, with the code of input `lane` of a chunk of feature f.
SIMT Ints word_of_code(int f, int chunk_of_tile) {
  const Ints i = lane_id(), lane = ((i & Ints(15)) >> Ints(2)) + Ints(f % 8 * 4);
  return lane * Ints(4) + Ints(chunk_of_tile * 2 + f / 8);
}
SIMT Ints byte_of_code(Ints word) {
  return (word << (Ints(24) - ((lane_id() & Ints(3)) << Ints(3)))) >> Ints(24);
}
// Eight bits: the chunk's upper inputs have words of their own.
SIMT Ints byte_codes(const Weights<int>& codes, int64_t tile, int f) {
  const Ints upper = (lane_id() >> Ints(4)) << Ints(1);
  return byte_of_code(codes.from(tile * kTileWords).load(word_of_code(f, 0) + upper));
}

template <typename Codes>
SIMT_PART Ints code_numbers(const GroupedWeights& table, const TableChunk& place) {
  const int panel = place.token / kPanelFeatures, f = place.token % kPanelFeatures;
  const int chunks = table.k / kChunk, tiles = (chunks + Codes::kChunksOfTile - 1) / Codes::kChunksOfTile;
  const int64_t tile = static_cast<int64_t>(panel) * tiles + place.chunk / Codes::kChunksOfTile;
  if constexpr (Codes::kBits == 8) {
    return byte_codes(table.codes, tile, f);
  } else {
    const Ints word = table.codes.from(tile * kTileWords).load(word_of_code(f, place.chunk % 2));
    const Ints shift = ((lane_id() & Ints(3)) << Ints(3)) + ((lane_id() >> Ints(4)) << Ints(2));
    const Ints nibble = (word >> shift) & Ints(15);
    if constexpr (Codes::kIsTable) return (look_up(table.numbers, nibble) << Ints(24)) >> Ints(24);
    return Codes::kIsCentred ? nibble - Ints(8) : nibble;
  }
}

template <typename Codes>
SIMT void look_up_grouped(const Block& block, const GroupedTableArgs& args) {
  const TableChunk place = table_chunk(block, args.of);
  if (!place.is_there) return;
  const int panel = place.token / kPanelFeatures, groups = args.table.k / Codes::kGroup;
  const int first = place.chunk * Codes::kGroupsOfChunk;
  const int64_t begin = (static_cast<int64_t>(panel) * groups + first) * kPanelFeatures;
  const Ints of_group =
      Ints(place.token % kPanelFeatures) + Ints(kPanelFeatures) * (lane_id() / Ints(Codes::kGroup));
  const Floats unit(args.table.units.load_one(panel));
  const Floats scale = mul_rn(from_half(args.table.scales.from(begin).load(of_group)), unit);
  Floats numbers = mul_rn(scale, to_float(code_numbers<Codes>(args.table, place)));
  if constexpr (Codes::kHasMin)
    numbers = sub_rn(numbers, mul_rn(from_half(args.table.mins.from(begin).load(of_group)), unit));
  put_chunk(args.of, place, numbers);
}

SIMT void look_up_channel(const Block& block, const ChannelTableArgs& args) {
  const TableChunk place = table_chunk(block, args.of);
  if (!place.is_there) return;
  const int panel = place.token / kPanelFeatures, chunks = (args.table.k + kChunk - 1) / kChunk;
  const int64_t tile = static_cast<int64_t>(panel) * chunks + place.chunk;
  const Floats scale(args.table.scales.load_one(place.token));
  const Ints codes = byte_codes(args.table.codes, tile, place.token % kPanelFeatures);
  put_chunk(args.of, place, mul_rn(scale, to_float(codes)));
}

template <typename Numbers>
SIMT void look_up_floats(const Block& block, const FloatTableArgs<Numbers>& args) {
  const TableChunk place = table_chunk(block, args.of);
  if (!place.is_there) return;
  const int64_t panel = static_cast<int64_t>(place.token / args.panel) * args.of.k;
  const auto numbers = args.table.from(panel * args.panel + place.token % args.panel);
  const Ints i = lane_id() + Ints(place.chunk * kChunk);
  put_chunk(args.of, place, Numbers::widen(numbers.load_if(i < Ints(args.of.k), i * Ints(args.panel), 0)));
}

SIMT void look_up_codes(const Block& block, const CodeTableArgs& args) {
  const TableChunk place = table_chunk(block, args.of);
  if (!place.is_there) return;
  const int64_t row = static_cast<int64_t>(place.token) * args.of.k, groups = row / args.group;
  const Ints i = lane_id() + Ints(place.chunk * kChunk), group = i / Ints(args.group);
  const Bools in = i < Ints(args.of.k);
  const Floats scale = args.scales.from(groups).load_if(in, group, 0.0F);
  Floats numbers = mul_rn(scale, to_float(args.codes.from(row).load_if(in, i, 0)));
  if (!args.mins.is_null()) numbers = sub_rn(numbers, args.mins.from(groups).load_if(in, group, 0.0F));
  put_chunk(args.of, place, numbers);
}

}  // namespace outrider::simt
