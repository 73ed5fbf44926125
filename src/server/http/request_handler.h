// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include "server/http/connection.h"

namespace outrider {

// Reads one request and answers it. False: the connection must close.
Connection::Task<bool> handle_request(Connection& connection);

}  // namespace outrider
