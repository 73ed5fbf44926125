// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/api/request_field.h"
#include "server/api/requests/generation_spec.h"

namespace outrider {

// "speculative": {"mode": "off|fixed|auto", "enabled": bool, "budget": nodes, "acceptance": rule,
// "trace": "none|summary|detailed"}. Sets spec.request.speculation and spec.trace.
ApiStatus read_speculative(const RequestField& field, GenerationSpec& spec);

}  // namespace outrider
