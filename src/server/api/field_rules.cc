// SPDX-License-Identifier: Apache-2.0
#include "server/api/field_rules.h"

#include <algorithm>

namespace outrider {
namespace {

ApiResult<std::string> check_bytes(const RequestField& field, std::string text, const ApiLimits& limits) {
  if (text.size() <= static_cast<size_t>(limits.grammar_bytes)) return text;
  return field.error("expected at most " + std::to_string(limits.grammar_bytes) + " bytes, found " +
                     std::to_string(text.size()));
}

}  // namespace

ApiError unknown_field(const RequestField& field) { return field.error("is not known here; leave it out"); }

ApiStatus check_unsupported(const RequestField& field, const UnsupportedField& rule) {
  const std::string json = field.json();
  for (std::string_view rest = rule.neutral; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == json) return api_ok();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const std::string allowed =
      rule.neutral.empty() ? "" : ", or one that changes nothing: " + std::string(rule.neutral);
  return field.error("is not supported here; expected no such field" + allowed, "unsupported_parameter");
}

ApiResult<std::string> schema_text(const RequestField& field, const ApiLimits& limits) {
  if (field.is_string()) return bounded_text(field, limits);
  if (!field.is_object() && !field.is_bool()) return field.expected("a JSON schema");
  return check_bytes(field, field.json(), limits);
}

ApiResult<std::string> bounded_text(const RequestField& field, const ApiLimits& limits) {
  OUTRIDER_TRY(std::string text, field.string());
  return check_bytes(field, std::move(text), limits);
}

ApiStatus read_parameter(const RequestField& field, const OptionRow& row, Request& request) {
  const NumberRange range = http_range(row.http.name);
  OptionValue value;
  switch (row.type()) {
    case OptionType::kNumber: {
      OUTRIDER_TRY(value.number, field.number(range.min, range.max));
      break;
    }
    case OptionType::kInteger: {
      OUTRIDER_TRY(value.integer, field.integer(whole_bound(range.min), whole_bound(range.max)));
      break;
    }
    default: {
      OUTRIDER_TRY(value.flag, field.boolean());
    }
  }
  const Status stored = row.member.of_request.store(request, value);
  return stored.ok() ? api_ok() : ApiStatus(field.error(stored.error().message));
}

}  // namespace outrider
