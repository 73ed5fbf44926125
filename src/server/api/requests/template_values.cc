// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/template_values.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr std::string_view kTemplateInputs[] = {"messages",  "tools",    "documents", "add_generation_prompt",
                                                "bos_token", "eos_token"};
constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
constexpr std::string_view kVerbosities[] = {"low", "medium", "high"};

}  // namespace

ApiResult<TemplateValues> read_template_values(const RequestField& field) {
  TemplateValues values;
  OUTRIDER_TRY(const auto members, field.members());
  for (const RequestField& member : members) {
    const bool is_input = std::find(std::begin(kTemplateInputs), std::end(kTemplateInputs), member.key()) !=
                          std::end(kTemplateInputs);
    if (is_input) return member.error("expected another name, which is no input of every template");
    if (!member.is_bool() && !member.is_string() && !member.is_number() && !member.is_null()) {
      return member.expected("a boolean, a string or a number");
    }
    values.emplace_back(std::string(member.key()), member.json());
  }
  return values;
}

ApiResult<TemplateValues> read_template_fields(const RequestField& root) {
  TemplateValues values;
  const auto reasoning = root.find("reasoning");
  const auto effort_field = reasoning ? reasoning->find("effort") : root.find("reasoning_effort");
  if (effort_field) {
    OUTRIDER_TRY(const int effort, effort_field->one_of(kEfforts));
    values.emplace_back("reasoning_effort", effort_field->json());
    if (effort == 0) values.emplace_back("enable_thinking", "false");
  }
  const auto text = root.find("text");
  if (const auto field = text ? text->find("verbosity") : root.find("verbosity")) {
    OUTRIDER_RETURN_IF_ERROR(field->one_of(kVerbosities));
    values.emplace_back("verbosity", field->json());
  }
  if (const auto field = root.find("enable_thinking")) {
    OUTRIDER_TRY(const bool thinks, field->boolean());
    values.emplace_back("enable_thinking", thinks ? "true" : "false");
  }
  if (const auto field = root.find("chat_template_kwargs")) {
    OUTRIDER_TRY(const TemplateValues more, read_template_values(*field));
    values.insert(values.end(), more.begin(), more.end());
  }
  return values;
}

}  // namespace outrider
