// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include "server/http/exchange.h"

namespace outrider {

// Answers a chat or a completion, streamed or not: preparation, engine, answer. The call is cancelled if its
// client goes away. False: the connection must close.
Connection::Task<bool> answer_generation(Exchange& exchange);

}  // namespace outrider
