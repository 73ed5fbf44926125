// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "models/backend/device/device_ops.h"
#include "models/blocks/experts/expert_weights.h"

namespace outrider {

// Runs mixtures of experts on a device, with the bits of ExpertOps. Shards exchange as there. The device
// chooses the experts and sorts the choices, and this machine does not know them. It launches as many tiles
// of eight rows as any choices could take; tiles that no expert has end at once.
class DeviceExperts {
 public:
  // `ops` must outlive it.
  DeviceExperts(const ExpertTraits& traits, const MlpTraits& mlp, int64_t hidden_size, DeviceOps& ops);

  struct Rows {
    FloatAddress router, x;  // [count, hidden_size], of the router and of the experts
    FloatAddress y;          // [count, hidden_size]
    int64_t count = 0;
  };
  void run(const ExpertWeights& layer, const Rows& rows);

 private:
  // The lists of a pass over so many rows.
  struct Lists {
    int64_t choices, tiles;
    simt::Rows<int> experts, places;  // [choices]
    simt::Rows<float> weights;        // [choices]
    simt::Rows<int> counts;           // [experts]
    simt::Rows<int> tile_experts;     // [tiles]
    simt::Rows<int> place_rows;       // [8 * tiles]
    simt::Rows<float> place_weights;  // [8 * tiles]

    int64_t place_count() const { return tiles * simt::kTileRows; }
  };
  Lists make_lists(int64_t rows);
  void choose(const ExpertWeights& layer, const Rows& rows, const Lists& lists);
  void sort(const Lists& lists);
  void gather(const Rows& rows, const Lists& lists);
  void multiply(const ExpertWeights& layer, const Lists& lists);
  void combine(const Rows& rows, const Lists& lists, int64_t dim);

  const ExpertTraits traits_;
  const MlpTraits mlp_;
  const int64_t hidden_size_;
  DeviceOps& ops_;
  DeviceBuffer outputs_, values_, sums_;  // of routers
  DeviceBuffer experts_, places_, weights_, counts_, tile_experts_, place_rows_, place_weights_;
  DeviceBuffer inputs_, gate_up_, gated_, results_;  // a row for each place
  DeviceBuffer whole_;                               // gated rows of all shards
  DeviceBuffer shard_sums_;                          // outputs of this shard
};

}  // namespace outrider
