// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include "server/http/exchange.h"

namespace outrider {

// Answers a route whose body the worker makes from the body of the request, without the engine. False: the
// connection must close.
Connection::Task<bool> answer_prepared(Exchange& exchange, TextFunction function);

}  // namespace outrider
