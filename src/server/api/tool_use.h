// SPDX-License-Identifier: Apache-2.0
// The tools of a chat request, and how the model's template family writes calls of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api/generation_spec.h"

namespace outrider {

struct Tool {
  std::string name;
  std::string parameters;  // JSON schema
  std::string path;        // of the schema
  bool strict = false;     // calls are held to the schema
};

enum class ToolChoice : uint8_t { kNone, kAuto, kRequired, kNamed };

struct ToolUse {
  ToolChoice choice = ToolChoice::kNone;  // kNone: calls are not looked for
  std::vector<Tool> tools;                // kNamed: the one that must be called
  std::string json;                       // all tools, for the template; empty where there are none
  bool parallel = true;

  bool must_call() const { return choice == ToolChoice::kRequired || choice == ToolChoice::kNamed; }
};

// tools, tool_choice and parallel_tool_calls of `root`.
ApiResult<ToolUse> read_tools(const RequestField& root, const ApiLimits& limits);

// How calls are written: [open] object or array of objects [close]. An object holds "name", and "arguments"
// or "parameters".
struct ToolFormat {
  std::string_view name;       // "hermes"
  std::string_view open;       // empty: none
  std::string_view close;      // empty: none
  bool only_at_start = false;  // `open` may be left out, but a call must be the first that is said
};

// By what the template itself prints: see docs/api.md.
const ToolFormat& tool_format(std::string_view chat_template);
// Of calls that a grammar forces: the object alone.
const ToolFormat& plain_tool_format();

// Whether the template shows tools to the model; if not, tool_instructions() go into the system message.
bool shows_tools(std::string_view chat_template);
std::string tool_instructions(const ToolUse& use);

}  // namespace outrider
