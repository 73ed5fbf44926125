// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include "server/http/exchange.h"
#include "server/http/request_reader.h"

namespace outrider {

// Turns the connection into a WebSocket and verifies the trees of its client (docs/guides/remote.md).
// Afterwards the connection must close.
Connection::Task<void> answer_drafting(Exchange& exchange, const RequestReader& reader);

}  // namespace outrider
