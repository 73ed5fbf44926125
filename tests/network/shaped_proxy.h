// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "outrider/result.h"

namespace outrider {

// A network as TCP sees it.
struct NetworkShape {
  double round_trip_ms = 0;    // half of it in each direction
  double jitter_ms = 0;        // the round trip is uniform in round_trip_ms +- jitter_ms
  double bits_per_second = 0;  // in each direction; 0: no limit
  double loss = 0;             // probability that a packet is lost and sent again after a timeout
};

struct ProxyOptions {
  std::string target_host = "127.0.0.1";
  int target_port = 0;
  int port = 0;  // on 127.0.0.1; 0: any that is free
  NetworkShape shape = {};
  uint64_t seed = 0;
  // Bytes of both directions together after which connection number n, from 0, is cut; negative: never.
  std::function<int64_t(int64_t connection)> cut_after = {};
  // After a cut the server still gets all that was on its way to it, so much later, while the client may
  // connect again; 0: it gets nothing.
  double late_ms = 0;
  // Probability that a message of a WebSocket comes twice.
  double duplicates = 0;
  // Called on the proxy's thread with each whole message of a WebSocket, before it is forwarded; empty: with
  // none. False: the network is gone for good after this message.
  std::function<bool(bool is_to_target, const std::string& message)> watch = {};
};

// Forwards TCP connections to a server as a slow or broken network would, on another thread.
class ShapedProxy {
 public:
  // Error: the port is in use.
  static Result<std::unique_ptr<ShapedProxy>> start(ProxyOptions options);
  ~ShapedProxy();  // cuts all connections

  int port() const;

  struct Counts {
    int64_t connections = 0;
    int64_t cuts = 0;
    int64_t bytes_to_target = 0;
    int64_t bytes_from_target = 0;
  };
  Counts counts() const;

 private:
  struct Impl;
  explicit ShapedProxy(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
