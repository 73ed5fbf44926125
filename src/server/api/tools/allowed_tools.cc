// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "base/quote.h"
#include "server/api/tools/tool_use.h"

namespace outrider {
namespace {

constexpr int kDepth = 64;

// The items of a list of tools, as the template sees them, whose function has one of these names.
std::string only_named(const std::string& tools, const std::set<std::string>& names) {
  const auto body = RequestBody::parse("{\"tools\":" + tools + "}", kDepth + 2);
  std::string kept;
  if (!body.ok()) return kept;
  const auto items = body->root().find("tools")->items(SIZE_MAX);
  for (const RequestField& item : items.value()) {
    const auto function = item.find("function");
    const auto name = function ? function->find("name") : std::nullopt;
    if (!name || !names.contains(name->string().value())) continue;
    kept.append(kept.empty() ? "[" : ",").append(item.json());
  }
  return kept.empty() ? kept : kept + "]";
}

}  // namespace

ApiStatus choose_allowed_tools(const RequestField& field, bool is_wrapped, ToolUse& use) {
  constexpr std::string_view kModes[] = {"auto", "required"};
  OUTRIDER_TRY(const RequestField mode_field, field.at("mode"));
  OUTRIDER_TRY(const int mode, mode_field.one_of(kModes));
  OUTRIDER_TRY(const RequestField list, field.at("tools"));
  OUTRIDER_TRY(const auto items, list.items(use.tools.size() + kDepth));
  std::set<std::string> names;
  for (const RequestField& item : items) {
    OUTRIDER_TRY(const RequestField type, item.at("type"));
    OUTRIDER_TRY(const std::string kind, type.string());
    if (kind != "function" && kind != "custom") continue;
    OUTRIDER_TRY(const RequestField holder, is_wrapped ? item.at(kind) : ApiResult<RequestField>(item));
    OUTRIDER_TRY(const RequestField name_field, holder.at("name"));
    OUTRIDER_TRY(std::string name, name_field.string());
    if (std::ranges::find(use.tools, name, &Tool::name) == use.tools.end())
      return name_field.error("expected the name of one of the tools, found " + quote(name));
    names.insert(std::move(name));
  }
  std::erase_if(use.tools, [&](const Tool& tool) { return !names.contains(tool.name); });
  use.json = only_named(use.json, names);
  return choose_tools(kModes[mode] == "auto" ? ToolChoice::kAuto : ToolChoice::kRequired, field, use);
}

}  // namespace outrider
