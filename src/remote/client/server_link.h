// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "outrider/result.h"
#include "remote/client/server_address.h"

namespace outrider {

// A connection to a server that verifies trees: whole messages over a WebSocket, on the calling thread.
class ServerLink {
 public:
  // Errors: kIo where the server cannot be reached or the connection broke, which may be better later; others
  // where it refuses the client. `idle_ms`: a connection over which nothing comes for so long, not even the
  // answer to a ping, counts as broken; 0: it may be silent.
  static Result<std::unique_ptr<ServerLink>> connect(const DraftingServer& server, double timeout_ms,
                                                     double idle_ms = 0);
  ~ServerLink();

  // Begins to send; receive() goes on with it. Error: the connection broke.
  Status send(std::string message);
  // The next message; nullopt: none came in this time. Error: the connection broke.
  Result<std::optional<std::string>> receive(double timeout_ms);
  // Sends what is left, and says goodbye.
  void close(double timeout_ms);

 private:
  struct Impl;
  explicit ServerLink(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
