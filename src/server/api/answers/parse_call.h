// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "server/api/api_error.h"
#include "server/api/call_context.h"
#include "server/api/generation_call.h"

namespace outrider {

// Reads and checks the body of a call, and does all of its work that may take long: template, tokens and
// grammar. Errors name the field. `context.model` must outlive the call.
ApiResult<std::unique_ptr<GenerationCall>> parse_call(Endpoint endpoint, std::string_view body,
                                                      const CallContext& context);

}  // namespace outrider
