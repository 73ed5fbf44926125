// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/sequence.h"
#include "outrider/engine.h"
#include "remote/client/drafting_parts.h"
#include "remote/client/server_link.h"
#include "remote/session/drafting_session.h"

namespace outrider {

// Counts of one request that was decoded by a server.
struct RemoteCounts {
  int64_t verdicts = 0;        // of trees
  int64_t reconnects = 0;      // connections beyond the first
  int64_t ahead = 0;           // trees drafted before the verdict about the one before came
  int64_t ahead_used = 0;      // those of them that the server went on with at once
  int64_t bytes_sent = 0;      // payloads
  int64_t bytes_received = 0;  // payloads
  double network_ms = 0;       // from trees to verdicts, without the server's own time
  double server_ms = 0;        // from the arrival of trees to verdicts, on the server

  RemoteCounts& operator+=(const RemoteCounts& other);
};

// Drafts here and has a server verify the trees. The output is that of the server's own plain decoding.
class RemoteDecoder {
 public:
  struct Times {
    double connect_ms = 5000;  // for one attempt to connect
    double silence_ms =
        30'000;  // without any message while one is expected; then the connection counts as broken
    double give_up_ms = 60'000;  // without a connection
  };
  // `parts` must outlive the decoder.
  RemoteDecoder(DraftingParts* parts, DraftingServer server)
      : RemoteDecoder(parts, std::move(server), Times()) {}
  RemoteDecoder(DraftingParts* parts, DraftingServer server, const Times& times)
      : parts_(parts), server_(std::move(server)), times_(times) {}

  // The type in which the server sends states, if the drafter reads any.
  void set_state_type(StateType type) { state_type_ = type; }

  // Reconnects where the connection breaks. Errors: the server refuses the request, or cannot be reached for
  // Times::give_up_ms; a request that has a constraint, token rules or log-probabilities, which the protocol
  // does not carry.
  Result<Completion> generate(const Request& request, const ProgressSink& sink);

  const RemoteCounts& counts() const { return counts_; }  // of the last request

 private:
  class Run;

  DraftingParts* parts_;
  DraftingServer server_;
  Times times_;
  StateType state_type_ = StateType::kBF16;
  RemoteCounts counts_;
};

}  // namespace outrider
