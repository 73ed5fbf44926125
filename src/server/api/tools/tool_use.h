// SPDX-License-Identifier: Apache-2.0
// The tools of a chat request.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_limits.h"
#include "server/api/request_field.h"

namespace outrider {

struct Tool {
  std::string name;
  std::string description = {};
  std::string parameters;   // JSON schema
  std::string path;         // path of the schema in the request
  bool strict = false;      // a grammar holds calls to the schema
  bool takes_text = false;  // a custom tool (custom_tools.h)
};

enum class ToolChoice : uint8_t { kNone, kAuto, kRequired, kNamed };

struct ToolUse {
  ToolChoice choice = ToolChoice::kNone;  // kNone: the output is not searched for calls
  std::vector<Tool> tools;                // kNamed: only the tool that must be called
  std::string json;                       // all tools, for the template; empty if there are none
  bool parallel = true;

  bool must_call() const { return choice == ToolChoice::kRequired || choice == ToolChoice::kNamed; }
};

// For APIs with another form of tools than OpenAI's chat: reads name, description, strict and, under
// `schema_key`, the schema of a function.
ApiResult<Tool> read_tool(const RequestField& function, std::string_view schema_key, const ApiLimits& limits);
// The tool as templates see it.
std::string tool_json(const Tool& tool);
// Adds a tool to the tools of a request, without its JSON. Error of `field`: its name is there already.
ApiStatus add_once(Tool tool, const RequestField& field, ToolUse& use);
// Adds a tool and its JSON. The request then may call.
ApiStatus add_tool(Tool tool, const RequestField& field, ToolUse& use);
// Read "none", "auto" or "required", set such a choice, and choose the tool that `field` names. They come
// after all tools were added.
ApiStatus read_tool_choice(const RequestField& field, ToolUse& use);
ApiStatus choose_tools(ToolChoice choice, const RequestField& field, ToolUse& use);
ApiStatus choose_named_tool(const RequestField& field, ToolUse& use);
// Reads OpenAI's "allowed_tools" (allowed_tools.cc): {"mode": "auto" or "required", "tools": [...]}. Only the
// named tools are shown to the model and may be called. `is_wrapped`: the name is in a member of an entry
// that is called as its type; entries of other types are skipped. Error: a name that is none of the tools.
ApiStatus choose_allowed_tools(const RequestField& field, bool is_wrapped, ToolUse& use);

// A text for models with a template that does not show tools.
std::string tool_instructions(const ToolUse& use);

}  // namespace outrider
