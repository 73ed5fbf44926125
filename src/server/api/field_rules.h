// SPDX-License-Identifier: Apache-2.0
// Reading the members of a JSON object by a table of names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/option_table.h"
#include "server/api/api_limits.h"
#include "server/api/request_field.h"

namespace outrider {

template <typename Spec>
struct FieldRule {
  std::string_view name;
  ApiStatus (*read)(const RequestField& field, Spec& spec);
};

template <typename Spec>
const FieldRule<Spec>* find_rule(std::span<const FieldRule<Spec>> rules, std::string_view name) {
  for (const FieldRule<Spec>& rule : rules) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

// The error for a member of a tool, of "speculative" or of an output form that no rule names.
ApiError unknown_field(const RequestField& field);

// Reads every member of `object` that is not null by its rule. Error: a member without a rule.
template <typename Spec>
ApiStatus read_members(const RequestField& object, std::span<const FieldRule<Spec>> rules, Spec& spec) {
  OUTRIDER_TRY(const std::vector<RequestField> members, object.members());
  for (const RequestField& member : members) {
    if (member.is_null()) continue;
    const FieldRule<Spec>* rule = find_rule(rules, member.key());
    if (rule == nullptr) return unknown_field(member);
    OUTRIDER_RETURN_IF_ERROR(rule->read(member, spec));
  }
  return api_ok();
}

// Reads a number or a flag of the option table.
ApiStatus read_parameter(const RequestField& field, const OptionRow& row, Request& request);

// A field of other APIs that this server does not implement.
struct UnsupportedField {
  std::string_view name;
  std::string_view neutral;  // the minified JSON values that change nothing, separated by spaces
};
// Error: the field has another value than the neutral ones.
ApiStatus check_unsupported(const RequestField& field, const UnsupportedField& rule);

// The text of a JSON schema that is given as an object or as a string.
ApiResult<std::string> schema_text(const RequestField& field, const ApiLimits& limits);
// A string of at most limits.grammar_bytes.
ApiResult<std::string> bounded_text(const RequestField& field, const ApiLimits& limits);

}  // namespace outrider
