// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include "server/http/exchange.h"

namespace outrider {

// Answers a request to a server of several models: about the fleet by itself, and else by the engine of the
// model that the request names. False: the connection is broken or has to end.
Connection::Task<bool> answer_by_fleet(Exchange& exchange);

}  // namespace outrider
