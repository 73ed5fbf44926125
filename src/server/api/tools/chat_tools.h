// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/api/tools/tool_use.h"

namespace outrider {

// Reads tools, tool_choice and parallel_tool_calls of a chat request.
ApiResult<ToolUse> read_tools(const RequestField& root, const ApiLimits& limits);

}  // namespace outrider
