// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include "server/http/exchange.h"

namespace outrider {

// Chat and completions, streaming or not: preparation, the engine, the answer. A client that goes away takes
// its call with it. False: the connection is to be closed.
Connection::Task<bool> answer_generation(Exchange& exchange);

// Tokens and templates: made by the worker, without the engine.
Connection::Task<bool> answer_prepared(Exchange& exchange);

}  // namespace outrider
