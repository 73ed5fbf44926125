// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/field_rules.h"
#include "server/api/requests/generation_spec.h"

namespace outrider {

// Reads a field that both endpoints know. The path of one without a meaning here is added to `spec.ignored`.
// Error: a field that no server has, or an unsupported one.
ApiStatus read_common_field(const RequestField& field, GenerationSpec& spec);
// The string of a member; empty: it is absent.
ApiResult<std::string> text_at(const RequestField& root, std::string_view name);
// Reads a stop string or an array of them.
ApiStatus read_stop_strings(const RequestField& field, GenerationSpec& spec);
// Checks that concern several fields at once.
ApiStatus check_common_fields(const RequestField& root, const GenerationSpec& spec);
// Drops the first tokens of a prompt that is longer than spec.prompt_limit. Returns whether it dropped any.
bool truncate_prompt(const GenerationSpec& spec, std::vector<TokenId>& tokens);

// Reads every member of `root` that is not null, by its rule or else as a common field.
template <typename Spec>
ApiStatus read_fields(const RequestField& root, std::span<const FieldRule<Spec>> rules, Spec& spec) {
  OUTRIDER_TRY(const std::vector<RequestField> members, root.members());
  for (const RequestField& member : members) {
    if (member.is_null()) continue;
    const FieldRule<Spec>* rule = find_rule(rules, member.key());
    OUTRIDER_RETURN_IF_ERROR(rule != nullptr ? rule->read(member, spec) : read_common_field(member, spec));
  }
  return check_common_fields(root, spec);
}

}  // namespace outrider
