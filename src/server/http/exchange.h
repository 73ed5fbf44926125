// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <string>
#include <string_view>

#include "server/http/connection.h"
#include "server/http/gate.h"
#include "server/http/reply.h"

namespace outrider {

// One request and what its answer needs of it.
struct Exchange {
  Connection* connection = nullptr;
  RequestHeader head = {};
  Admission admission = {};
  std::string body = {};
  double arrived_ms = 0;
  std::string id = {};
  std::string client_id = {};  // X-Request-Id in the answer: the client's, or `id`
  bool keeps_alive = false;
  bool is_chunked = true;  // streams: HTTP/1.0 ends them by closing
};

// Reads one request and answers it. False: the connection is to be closed.
Connection::Task<bool> exchange_one(Connection& connection);

// Status line and headers of an answer, the empty line included. `length` < 0: unknown, chunked.
std::string head_text(const Exchange& exchange, const Reply& reply, int64_t length);

// Sends the whole answer, and logs it. False: could not be sent.
Connection::Task<bool> send(Exchange& exchange, const Reply& reply);
// For calls, which are logged when the engine is done with them.
Connection::Task<bool> send_unlogged(Exchange& exchange, const Reply& reply);

}  // namespace outrider
