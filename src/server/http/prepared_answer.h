// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "server/http/exchange.h"

namespace outrider {

// Makes the body of an answer from the body of a request.
using BodyFunction = std::function<ApiResult<std::string>(std::string_view body)>;
// Answers a request with what the worker makes of its body. The worker may call the function when the
// exchange is gone. False: the connection must close.
Connection::Task<bool> answer_prepared(Exchange& exchange, BodyFunction function);

// For a route that does without the engine.
BodyFunction body_function(const Exchange& exchange, TextFunction function);

}  // namespace outrider
