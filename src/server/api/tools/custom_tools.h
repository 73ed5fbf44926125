// SPDX-License-Identifier: Apache-2.0
// OpenAI's custom tools, whose input is text. For the model they are functions with one argument, "input".
#pragma once

#include <string>
#include <string_view>

#include "server/api/tools/tool_use.h"

namespace outrider {

// Reads name, description and format of a custom tool.
ApiResult<Tool> read_custom_tool(const RequestField& custom, const ApiLimits& limits);

// The arguments of a custom tool's call, and the input that such arguments hold.
std::string custom_arguments(std::string_view input);
std::string custom_input(const std::string& arguments);

}  // namespace outrider
