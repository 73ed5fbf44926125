// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include "server/http/prepared_answer.h"

namespace outrider {

// llama-server's POST /slots/{id}?action=save, restore or erase. The function waits for the engine.
BodyFunction slot_function(const Exchange& exchange);

}  // namespace outrider
