// SPDX-License-Identifier: Apache-2.0
// Answers that the I/O thread makes at once, because they need no work of the engine.
#pragma once

#include "server/http/reply.h"
#include "server/http/router.h"
#include "server/http/service.h"

namespace outrider {

// The answer to any GET route, to cancel and to DELETE.
Reply answer(Service& service, const RouteMatch& match, uint64_t scope);

}  // namespace outrider
