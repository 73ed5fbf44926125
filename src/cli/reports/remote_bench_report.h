// SPDX-License-Identifier: Apache-2.0
// The results of `bench remote`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "remote/client/remote_decoder.h"

namespace outrider {

// Tokens that came after the first ones of their prompts, and the time they took. Reading the prompts is left
// out: a server keeps those that it has seen.
struct DecodeTime {
  int64_t tokens = 0;
  double ms = 0;

  // Tokens per second; nullopt: all tokens of each output came at once.
  std::optional<double> rate() const {
    return ms > 0 ? std::optional(static_cast<double>(tokens) * 1e3 / ms) : std::nullopt;
  }
};

// All prompts over one network.
struct NetworkMeasurement {
  std::string network;
  int64_t tokens = 0;        // of all outputs
  DecodeTime drafted = {};   // with drafts from here
  DecodeTime streamed = {};  // decoded plainly by the server
  RemoteCounts counts = {};  // sums over the prompts
};

struct RemoteBench {
  std::string server;
  std::string drafter;
  int64_t prompts = 0;
  DecodeTime local = {};  // plain decoding on this machine
  std::vector<NetworkMeasurement> networks = {};
};

nlohmann::ordered_json remote_bench_json(const RemoteBench& bench);
std::string remote_bench_text(const RemoteBench& bench);

}  // namespace outrider
