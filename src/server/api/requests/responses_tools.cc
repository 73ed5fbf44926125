// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/responses_tools.h"

#include <algorithm>
#include <utility>

#include "base/quote.h"
#include "server/api/tools/custom_tools.h"

namespace outrider {
namespace {

constexpr size_t kMaxName = 128;

class ToolReader {
 public:
  ToolReader(const ApiLimits& limits, bool may_repeat, ResponseTools& tools)
      : limits_(limits), may_repeat_(may_repeat), tools_(tools) {}

  ApiStatus read_list(const RequestField& list, const std::string& space) {
    OUTRIDER_TRY(const auto items, list.items(static_cast<size_t>(limits_.tools)));
    for (const RequestField& item : items) OUTRIDER_RETURN_IF_ERROR(read(item, space));
    return api_ok();
  }

 private:
  ApiStatus read(const RequestField& item, const std::string& space) {
    OUTRIDER_TRY(const RequestField type_field, item.at("type"));
    OUTRIDER_TRY(const std::string type, type_field.string());
    if (type == "function") {
      OUTRIDER_TRY(Tool tool, read_tool(item, "parameters", limits_));
      return add(std::move(tool), item, space, ResponseToolKind::kFunction);
    }
    if (type == "custom") return read_custom(item, space);
    if (type == "namespace" && space.empty()) return read_namespace(item);
    if (type == kSearchTool && is_done_by_client(item)) return read_search(item);
    tools_.ignored.push_back(item.path());
    return api_ok();
  }

  ApiStatus read_namespace(const RequestField& item) {
    OUTRIDER_TRY(const RequestField name, item.at("name"));
    OUTRIDER_TRY(const std::string space, name.string());
    if (space.empty()) return name.error("expected the name of a namespace, found an empty one");
    OUTRIDER_TRY(const RequestField list, item.at("tools"));
    return read_list(list, space);
  }

  ApiStatus read_custom(const RequestField& item, const std::string& space) {
    OUTRIDER_TRY(Tool tool, read_custom_tool(item, limits_));
    return add(std::move(tool), item, space, ResponseToolKind::kCustom);
  }

  static bool is_done_by_client(const RequestField& item) {
    const auto execution = item.find("execution");
    return execution && execution->is_string() && execution->string().value() == "client" &&
           item.find("parameters");
  }

  ApiStatus read_search(const RequestField& item) {
    Tool tool{.name = std::string(kSearchTool), .parameters = {}, .path = item.path() + ".parameters"};
    if (const auto description = item.find("description")) {
      OUTRIDER_TRY(tool.description, description->string());
    }
    OUTRIDER_TRY(const RequestField parameters, item.at("parameters"));
    if (!parameters.is_object()) return parameters.expected("a JSON schema");
    tool.parameters = parameters.json();
    return add(std::move(tool), item, "", ResponseToolKind::kSearch);
  }

  ApiStatus add(Tool tool, const RequestField& item, const std::string& space, ResponseToolKind kind) {
    tool.name = space + tool.name;
    if (tool.name.size() > kMaxName) {
      return item.error("expected at most " + std::to_string(kMaxName) +
                        " bytes of namespace and name, found " + quote(tool.name));
    }
    const bool is_known =
        std::ranges::find(tools_.use.tools, tool.name, &Tool::name) != tools_.use.tools.end();
    if (is_known && may_repeat_) return api_ok();
    if (kind != ResponseToolKind::kFunction) tools_.kinds.emplace(tool.name, kind);
    return add_tool(std::move(tool), item, tools_.use);
  }

  const ApiLimits& limits_;
  bool may_repeat_;
  ResponseTools& tools_;
};

ApiStatus read_choice_object(const RequestField& choice, ToolUse& use) {
  constexpr std::string_view kTypes[] = {"function", "custom", "allowed_tools"};
  OUTRIDER_TRY(const RequestField type, choice.at("type"));
  OUTRIDER_TRY(const int kind, type.one_of(kTypes));
  return kTypes[kind] == "allowed_tools" ? choose_allowed_tools(choice, false, use)
                                         : choose_named_tool(choice, use);
}

}  // namespace

ApiStatus add_response_tools(const RequestField& list, const ApiLimits& limits, bool may_repeat,
                             ResponseTools& tools) {
  return ToolReader(limits, may_repeat, tools).read_list(list, "");
}

ApiStatus read_response_choice(const RequestField& root, ToolUse& use) {
  if (const auto choice = root.find("tool_choice")) {
    OUTRIDER_RETURN_IF_ERROR(choice->is_object() ? read_choice_object(*choice, use)
                                                 : read_tool_choice(*choice, use));
  }
  if (const auto parallel = root.find("parallel_tool_calls")) {
    OUTRIDER_TRY(use.parallel, parallel->boolean());
  }
  return api_ok();
}

}  // namespace outrider
