// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <optional>
#include <string>

#include "server/fleet/fleet.h"
#include "server/http/exchange.h"
#include "server/http/request_reader.h"

namespace outrider {

// A request with the name of the model that is to answer it.
struct ForwardedRequest {
  std::string body = {};   // unpacked
  std::string model = {};  // empty: it names none
  bool streams = false;
};

// Lets the engine of the model answer, which is loaded first if it is not there. A stream of events that
// waits for that gets comments. False: the connection is broken or has to end.
Connection::Task<bool> answer_forwarded(Exchange& exchange, ForwardedRequest request);

// Connects the client of the drafting protocol with the engine of the model that its target names. Afterwards
// the connection must close.
Connection::Task<void> forward_drafting(Exchange& exchange, const RequestReader& reader);

// The whole answer of an engine, without the headers that every answer has; nullopt: it is gone.
Connection::Task<std::optional<Reply>> ask_engine(Exchange& exchange, MemberPointer member,
                                                  ForwardedRequest request);

}  // namespace outrider
