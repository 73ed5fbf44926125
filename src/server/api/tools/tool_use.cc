// SPDX-License-Identifier: Apache-2.0
#include "server/api/tools/tool_use.h"

#include <algorithm>

#include "base/quote.h"
#include "server/api/field_rules.h"
#include "server/api/json_writer.h"

namespace outrider {
namespace {

constexpr std::string_view kAnyArguments = R"({"type":"object"})";

ApiStatus check_name(const RequestField& field, const std::string& name) {
  constexpr size_t kMax = 128;  // the limit of the Model Context Protocol
  const bool fits =
      !name.empty() && name.size() <= kMax && std::all_of(name.begin(), name.end(), [](char byte) {
        return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_' || byte == '-' ||
               byte == '.';
      });
  if (fits) return api_ok();
  return field.error("expected 1 to 128 letters, digits, '_', '-' or '.', found " + quote(name));
}

}  // namespace

std::string tool_json(const Tool& tool) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("type", "function").key("function").begin_object().member("name", tool.name);
  if (!tool.description.empty()) json.member("description", tool.description);
  json.key("parameters").json(tool.parameters).end_object().end_object();
  return text;
}

ApiResult<Tool> read_tool(const RequestField& function, std::string_view schema_key,
                          const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestField name, function.at("name"));
  Tool tool;
  OUTRIDER_TRY(tool.name, name.string());
  OUTRIDER_RETURN_IF_ERROR(check_name(name, tool.name));
  if (const auto description = function.find("description")) {
    OUTRIDER_TRY(tool.description, description->string());
  }
  if (const auto strict = function.find("strict")) {
    OUTRIDER_TRY(tool.strict, strict->boolean());
  }
  tool.path = function.path() + "." + std::string(schema_key);
  tool.parameters = kAnyArguments;
  if (const auto parameters = function.find(schema_key)) {
    if (!parameters->is_object()) return parameters->expected("a JSON schema");
    OUTRIDER_TRY(tool.parameters, schema_text(*parameters, limits));
  }
  return tool;
}

ApiStatus add_once(Tool tool, const RequestField& field, ToolUse& use) {
  const bool is_known = std::any_of(use.tools.begin(), use.tools.end(),
                                    [&](const Tool& other) { return other.name == tool.name; });
  if (is_known) return field.error("expected every name once, found " + quote(tool.name) + " twice");
  use.tools.push_back(std::move(tool));
  return api_ok();
}

ApiStatus add_tool(Tool tool, const RequestField& field, ToolUse& use) {
  const std::string text = tool_json(tool);
  OUTRIDER_RETURN_IF_ERROR(add_once(std::move(tool), field, use));
  if (use.json.empty()) {
    use.json = "[" + text + "]";
  } else {
    use.json.insert(use.json.size() - 1, "," + text);
  }
  use.choice = ToolChoice::kAuto;
  return api_ok();
}

ApiStatus read_tool_choice(const RequestField& field, ToolUse& use) {
  constexpr std::string_view kChoices[] = {"none", "auto", "required"};
  if (!field.is_string()) return field.expected("none, auto, required or an object that names a function");
  OUTRIDER_TRY(const int choice, field.one_of(kChoices));
  return choose_tools(static_cast<ToolChoice>(choice), field, use);
}

ApiStatus choose_tools(ToolChoice choice, const RequestField& field, ToolUse& use) {
  if (use.tools.empty() && choice == ToolChoice::kRequired) {
    return field.error("expected tools to choose from, found none");
  }
  use.choice = use.tools.empty() ? ToolChoice::kNone : choice;
  if (use.choice == ToolChoice::kNone) use.json.clear();
  return api_ok();
}

ApiStatus choose_named_tool(const RequestField& field, ToolUse& use) {
  OUTRIDER_TRY(const RequestField name_field, field.at("name"));
  OUTRIDER_TRY(const std::string name, name_field.string());
  const auto tool =
      std::find_if(use.tools.begin(), use.tools.end(), [&](const Tool& t) { return t.name == name; });
  if (tool == use.tools.end())
    return name_field.error("expected the name of one of the tools, found " + quote(name));
  Tool named = std::move(*tool);
  use.tools.assign(1, std::move(named));
  use.choice = ToolChoice::kNamed;
  return api_ok();
}

std::string tool_instructions(const ToolUse& use) {
  return "You may call one of these functions, given as JSON:\n" + use.json +
         "\nTo call one, answer with nothing but "
         R"({"name": its name, "arguments": an object with its arguments}.)";
}

}  // namespace outrider
