// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <string>
#include <string_view>

#include "server/http/connection.h"
#include "server/http/gate.h"
#include "server/http/gzip_body.h"
#include "server/http/reply.h"

namespace outrider {

// One request, with everything that its answer needs.
struct Exchange {
  Connection* connection = nullptr;
  RequestHeader header = {};
  Admission admission = {};
  ReceivedBody body = {};
  double arrived_ms = 0;
  std::string id = {};
  std::string subject = {};    // what an audited request is about, as it says itself
  std::string client_id = {};  // X-Request-Id of the answer: the client's, or `id`
  bool keeps_alive = false;
  bool is_answered = false;  // a part of the answer may have been sent
  bool is_chunked = true;    // streams: HTTP/1.0 ends them by closing
};

// Status line and headers of an answer, including the empty line. `length` < 0: unknown, chunked.
std::string header_text(const Exchange& exchange, const Reply& reply, int64_t length);

// The answer to a request that fails, in the form that clients of its path expect.
Reply error_reply(const Exchange& exchange, const ApiError& error);

// The sender of the request, for the log.
RequestClient client_of(const Exchange& exchange);
// Whether the request gets a line in the log.
bool is_logged(const Exchange& exchange);

// The line of a request that no call has.
void log_reply(const Exchange& exchange, const Reply& reply);
// The line of an audited or refused request in the audit log, where there is one.
void audit_reply(const Exchange& exchange, const Reply& reply);
// Sends the whole answer and logs it. False: the connection is broken.
Connection::Task<bool> send(Exchange& exchange, const Reply& reply);
// For calls, which LiveCalls logs when they are finished.
Connection::Task<bool> send_unlogged(Exchange& exchange, const Reply& reply);

}  // namespace outrider
