// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

inline constexpr int kTileWords = 128;  // words of codes that a warp loads at once, four in each lane

// The tiles of codes that a warp reads, in turn with the other warps of its block, some side by side in each
// turn. They are weights, so the first ones are ordered before the inputs are there.
struct CodeRing {
  static constexpr int kPlaces = 4;
  static constexpr int kBytes = kPlaces * kTileWords * 4;
  static constexpr int kMostWarps = 8;
  static constexpr int kMostBytes = kMostWarps * kBytes;

  const Block& block;
  Shared<int> ring;
  Weights<int> codes;  // of the panel
  int tiles;
  int of_turn;  // tiles side by side
  int next;     // tile to be ordered
  int turn;     // counts the tiles that were read

  SIMT CodeRing(const Block& in, const Weights<int>& all, int panel, int tiles_of_panel,
                int tiles_of_turn = 1)
      : block(in),
        ring(in, in.warp() * kBytes, kPlaces * kTileWords),
        codes(all.from(static_cast<int64_t>(panel) * tiles_of_panel * kTileWords)),
        tiles(tiles_of_panel),
        of_turn(tiles_of_turn),
        next(in.warp() * tiles_of_turn),
        turn(0) {
    for (int i = 0; i < kPlaces - 1; ++i) order(i);
  }
  SIMT void order(int place) {
    if (next < tiles) {
      const Ints word = lane_id() * Ints(4);
      copy_async(Bools(true), ring, word + Ints(place * kTileWords), codes, word + Ints(next * kTileWords));
    }
    group_copies(block);
    if (++next % of_turn == 0) next += (block.warps() - 1) * of_turn;
  }
  SIMT void take(Ints (&tile)[4]) {
    order((turn + kPlaces - 1) % kPlaces);
    wait_copies<kPlaces - 1>(block);
    ring.get4(lane_id() * Ints(4) + Ints(turn % kPlaces * kTileWords), tile);
    ++turn;
  }
};

}  // namespace outrider::simt
