// SPDX-License-Identifier: Apache-2.0
// Answers that need no engine: made at once, on the I/O thread.
#pragma once

#include "server/http/reply.h"
#include "server/http/router.h"
#include "server/http/service.h"

namespace outrider {

// Of every GET route, and of cancel.
Reply answer(Service& service, const RouteMatch& match, uint64_t scope);

}  // namespace outrider
