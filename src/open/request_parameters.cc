// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <vector>

#include "config/message_text.h"
#include "config/option_table.h"
#include "outrider/open.h"

namespace outrider {
namespace {

Status assign(Request& request, std::string_view name, std::span<const std::string> values) {
  if (const OptionRow* row = find_parameter(name)) return row->store(request, values);
  std::vector<std::string> names;
  for (const OptionRow& row : option_table()) {
    if (row.member.is_of_request()) names.push_back(row.config_key());
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  return usage_error("no such parameter" + suggestion(name, views));
}

}  // namespace

Status set_parameter(Request& request, std::string_view name, std::span<const std::string> values) {
  const Status assigned = assign(request, name, values);
  if (assigned.ok()) return {};
  return Error{assigned.error().kind, fmt::format("{}: {}", name, assigned.error().message)};
}

}  // namespace outrider
