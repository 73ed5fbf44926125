// SPDX-License-Identifier: Apache-2.0
// The results of `bench remote`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "remote/client/remote_decoder.h"

namespace outrider {

// All prompts over one network.
struct NetworkMeasurement {
  std::string network;
  int64_t tokens = 0;
  double drafting_ms = 0;    // with drafts from here, prompts included
  double streaming_ms = 0;   // of as many tokens, decoded plainly by the server and streamed
  RemoteCounts counts = {};  // sums over the prompts

  double drafting_rate() const {
    return static_cast<double>(tokens) * 1e3 / drafting_ms;
  }  // tokens per second
  double streaming_rate() const {
    return static_cast<double>(tokens) * 1e3 / streaming_ms;
  }  // tokens per second
};

struct RemoteBench {
  std::string server;
  std::string drafter;
  int64_t prompts = 0;
  double local_rate = 0;  // tokens per second of plain decoding on this machine
  std::vector<NetworkMeasurement> networks = {};
};

nlohmann::ordered_json remote_bench_json(const RemoteBench& bench);
std::string remote_bench_text(const RemoteBench& bench);

}  // namespace outrider
