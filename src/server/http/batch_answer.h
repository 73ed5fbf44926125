// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include "server/http/exchange.h"

namespace outrider {

// Answers a request of the Batch API on the thread of the batches. False: the connection has to end.
Connection::Task<bool> answer_batch(Exchange& exchange);

}  // namespace outrider
