// SPDX-License-Identifier: Apache-2.0
#include "server/api/tools/chat_tools.h"

#include <utility>

#include "server/api/tools/custom_tools.h"

namespace outrider {
namespace {

constexpr std::string_view kToolTypes[] = {"function", "custom"};

ApiResult<Tool> read_chat_tool(const RequestField& field, const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestField type, field.at("type"));
  OUTRIDER_TRY(const int kind, type.one_of(kToolTypes));
  OUTRIDER_TRY(const RequestField holder, field.at(kToolTypes[kind]));
  return kind == 0 ? read_tool(holder, "parameters", limits) : read_custom_tool(holder, limits);
}

ApiStatus read_named_choice(const RequestField& field, ToolUse& use) {
  OUTRIDER_TRY(const RequestField type, field.at("type"));
  OUTRIDER_TRY(const int kind, type.one_of(kToolTypes));
  OUTRIDER_TRY(const RequestField holder, field.at(kToolTypes[kind]));
  return choose_named_tool(holder, use);
}

ApiStatus read_choice(const RequestField& field, ToolUse& use) {
  if (field.is_object() && field.find("allowed_tools"))
    return choose_allowed_tools(*field.find("allowed_tools"), true, use);
  if (field.is_object()) return read_named_choice(field, use);
  return read_tool_choice(field, use);
}

}  // namespace

ApiResult<ToolUse> read_tools(const RequestField& root, const ApiLimits& limits) {
  ToolUse use;
  if (const auto field = root.find("tools")) {
    OUTRIDER_TRY(const auto items, field->items(static_cast<size_t>(limits.tools)));
    for (const RequestField& item : items) {
      OUTRIDER_TRY(Tool tool, read_chat_tool(item, limits));
      use.json.append(use.json.empty() ? "[" : ",").append(tool.takes_text ? tool_json(tool) : item.json());
      OUTRIDER_RETURN_IF_ERROR(add_once(std::move(tool), item, use));
    }
    if (!use.json.empty()) use.json += ']';
  }
  use.choice = use.tools.empty() ? ToolChoice::kNone : ToolChoice::kAuto;
  if (const auto choice = root.find("tool_choice")) OUTRIDER_RETURN_IF_ERROR(read_choice(*choice, use));
  if (const auto parallel = root.find("parallel_tool_calls")) {
    OUTRIDER_TRY(use.parallel, parallel->boolean());
  }
  return use;
}

}  // namespace outrider
