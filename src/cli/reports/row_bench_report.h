// SPDX-License-Identifier: Apache-2.0
// The results of `bench --rows`.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "models/pass_profile.h"
#include "outrider/engine.h"

namespace outrider {

struct RowMeasurement {
  int rows = 0;
  int width = 1;                // children of every node of the tree that the rows are
  std::vector<double> ms = {};  // per round
  std::vector<double> bytes =
      {};                    // per round: weights that the pass read; experts count where a row chose them
  PassProfile profile = {};  // sums over the rounds
  std::optional<DeviceCounts> device = {};  // orders of the last round; nullopt: this machine computes
};

struct RowBench {
  EngineInfo info;
  int64_t context = 0;         // tokens in the cache before each pass
  int64_t streamed_bytes = 0;  // weights that a pass over one row reads
  std::vector<RowMeasurement> passes;
  std::vector<double>
      read_ms;  // per round: a plain read of streamed_bytes; on a device, a copy that moves as many
  bool has_profiles = false;                 // passes have them
  std::map<InputLayout, double> peaks = {};  // operations per second of products; empty: they are not known
};

nlohmann::ordered_json row_bench_json(const RowBench& bench);
std::string row_bench_text(const RowBench& bench);

}  // namespace outrider
