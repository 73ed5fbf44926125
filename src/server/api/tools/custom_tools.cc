// SPDX-License-Identifier: Apache-2.0
#include "server/api/tools/custom_tools.h"

#include "server/api/json_writer.h"

namespace outrider {
namespace {

constexpr std::string_view kInputSchema =
    R"({"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false})";

// The description and, where the input has a grammar, the grammar. Chat has its members one level deeper.
ApiResult<std::string> described(std::string description, const RequestField& format) {
  const auto nested = format.find("grammar");
  const RequestField holder = nested && nested->is_object() ? *nested : format;
  const auto definition = holder.find("definition");
  if (!definition) return description;
  OUTRIDER_TRY(const std::string text, definition->string());
  const auto syntax = holder.find("syntax");
  OUTRIDER_TRY(const std::string name, syntax ? syntax->string() : ApiResult<std::string>(std::string()));
  if (!description.empty()) description += "\n\n";
  return description + "The input follows this grammar (" + name + "):\n" + text;
}

}  // namespace

ApiResult<Tool> read_custom_tool(const RequestField& custom, const ApiLimits& limits) {
  OUTRIDER_TRY(Tool tool, read_tool(custom, "parameters", limits));
  tool.parameters = kInputSchema;
  tool.takes_text = true;
  if (const auto format = custom.find("format")) {
    OUTRIDER_TRY(tool.description, described(tool.description, *format));
  }
  return tool;
}

std::string custom_arguments(std::string_view input) {
  std::string arguments;
  JsonWriter(arguments).begin_object().member("input", input).end_object();
  return arguments;
}

std::string custom_input(const std::string& arguments) {
  constexpr int kDepth = 4;
  const auto parsed = RequestBody::parse(arguments, kDepth);
  const auto input = parsed.ok() ? parsed->root().find("input") : std::nullopt;
  return input && input->is_string() ? input->string().value() : arguments;
}

}  // namespace outrider
