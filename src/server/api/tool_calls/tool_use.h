// SPDX-License-Identifier: Apache-2.0
// The tools of a chat request, and how the model's template family writes calls of them.
#pragma once

#include <array>
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

enum class CallForm : uint8_t {
  kObject,  // {"name": ..., "arguments" or "parameters": ...}
  kFenced,  // DeepSeek's: a name, a mark, a JSON object, in newer models without fence
  kTagged,  // Qwen3-Coder's: name>, arguments as <parameter=key>text</parameter>, </function>
};

// How calls are written: [open] calls [close]; calls that are objects may stand in an array.
struct ToolFormat {
  std::string_view name;       // "hermes"
  std::string_view open;       // empty: none
  std::string_view close;      // empty: none
  bool only_at_start = false;  // `open` may be left out, but a call must be the first that is said
  CallForm form = CallForm::kObject;
  std::string_view begin = {};                  // of every call; of objects, none
  std::array<std::string_view, 2> behind = {};  // what may stand behind a call
};

// By what the template itself prints: see docs/api.md.
const ToolFormat& tool_format(std::string_view chat_template);
// Of calls that a grammar forces: the object alone.
const ToolFormat& plain_tool_format();

// Whether the template shows tools to the model; if not, tool_instructions() go into the system message.
bool shows_tools(std::string_view chat_template);
std::string tool_instructions(const ToolUse& use);

}  // namespace outrider
