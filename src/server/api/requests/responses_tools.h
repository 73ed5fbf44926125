// SPDX-License-Identifier: Apache-2.0
// The tools of /v1/responses. For the template all of them are functions, whatever they are for the client.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/api/api_limits.h"
#include "server/api/request_field.h"
#include "server/api/tools/tool_use.h"

namespace outrider {

enum class ResponseToolKind : uint8_t {
  kFunction,
  kCustom,  // its input is text: the function's one argument, "input"
  kSearch,  // the client looks for more tools
};

inline constexpr std::string_view kSearchTool = "tool_search";

struct ResponseTools {
  ToolUse use;
  std::map<std::string, ResponseToolKind> kinds;  // by name; functions are left out
  std::vector<std::string> ignored;               // paths of tools that no model here can use
};

// Adds functions, custom tools, the members of a namespace under the names NAMESPACE + name, and a search
// that the client does. All other tools, which OpenAI's own servers run, are left out: agents list them
// without being asked. A tool that is there already is skipped if `may_repeat`. Errors: a malformed tool, a
// name twice.
ApiStatus add_response_tools(const RequestField& list, const ApiLimits& limits, bool may_repeat,
                             ResponseTools& tools);

// Reads tool_choice and parallel_tool_calls, after all tools were added.
ApiStatus read_response_choice(const RequestField& root, ToolUse& use);

}  // namespace outrider
