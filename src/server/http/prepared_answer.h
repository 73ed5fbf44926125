// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include "server/http/exchange.h"

namespace outrider {

// Answers the routes about tokens and templates (api/answers/text_routes.h). The worker does their work; they
// need no engine. False: the connection must close.
Connection::Task<bool> answer_prepared(Exchange& exchange);

}  // namespace outrider
