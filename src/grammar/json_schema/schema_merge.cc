// SPDX-License-Identifier: Apache-2.0
#include "grammar/json_schema/schema_merge.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <set>

#include "base/quote.h"
#include "grammar/json_schema/schema_keywords.h"

namespace outrider {
namespace {

SchemaJson both(const SchemaJson& a, const SchemaJson& b) {
  return SchemaJson{{"allOf", SchemaJson::array({a, b})}};
}

SchemaJson as_list(const SchemaJson& value) { return value.is_array() ? value : SchemaJson::array({value}); }

// The types that both lists allow; "integer" is part of "number".
SchemaJson common_types(const SchemaJson& a, const SchemaJson& b) {
  SchemaJson common = SchemaJson::array();
  for (const SchemaJson& mine : as_list(a)) {
    for (const SchemaJson& theirs : as_list(b)) {
      if (mine == theirs || (mine == "integer" && theirs == "number")) common.push_back(mine);
      if (mine == "number" && theirs == "integer") common.push_back(theirs);
    }
  }
  return common;
}

SchemaJson common_values(const SchemaJson& a, const SchemaJson& b) {
  const std::set<SchemaJson> others(b.begin(), b.end());
  SchemaJson common = SchemaJson::array();
  for (const SchemaJson& value : a) {
    if (others.contains(value)) common.push_back(value);
  }
  return common;
}

SchemaJson all_names(const SchemaJson& a, const SchemaJson& b) {
  std::set<SchemaJson> known(a.begin(), a.end());
  SchemaJson names = a;
  for (const SchemaJson& name : b) {
    if (known.insert(name).second) names.push_back(name);
  }
  return names;
}

bool is_any(std::string_view keyword, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), keyword) != list.end();
}

// Returns a discarded value where the numbers are too large.
SchemaJson common_multiple(const SchemaJson& a, const SchemaJson& b) {
  constexpr int64_t kMax = 1 << 30;
  const auto first = a.get<int64_t>(), second = b.get<int64_t>();
  if (first < 1 || second < 1 || first > kMax || second > kMax)
    return SchemaJson(SchemaJson::value_t::discarded);
  return std::lcm(first, second);
}

// Returns a discarded value if the two cannot be merged.
SchemaJson join(const std::string& keyword, const SchemaJson& a, const SchemaJson& b) {
  const bool are_numbers = a.is_number() && b.is_number();
  if (keyword == "type") return common_types(a, b);
  if (keyword == "enum" && a.is_array() && b.is_array()) return common_values(a, b);
  if (keyword == "required" && a.is_array() && b.is_array()) return all_names(a, b);
  if (is_any(keyword, {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"}) &&
      are_numbers) {
    return std::max(a, b);
  }
  if (is_any(keyword, {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}) &&
      are_numbers) {
    return std::min(a, b);
  }
  if (keyword == "multipleOf" && a.is_number_integer() && b.is_number_integer()) return common_multiple(a, b);
  if (keyword == "uniqueItems" && a.is_boolean() && b.is_boolean()) return a == true || b == true;
  if (keyword == "items" && !a.is_array() && !b.is_array()) return both(a, b);
  if (keyword == "propertyNames") return both(a, b);
  if (keyword == "additionalProperties") {
    if (a == false || b == false) return false;
    return both(a, b);
  }
  if (keyword == "properties" && a.is_object() && b.is_object()) {
    SchemaJson joined = a;
    for (const auto& [name, schema] : b.items()) {
      joined[name] = joined.contains(name) ? both(joined[name], schema) : schema;
    }
    return joined;
  }
  return SchemaJson(SchemaJson::value_t::discarded);
}

// A schema that allows only its own properties removes properties that only the other schema has.
Status check_closed(const SchemaJson& closed, const SchemaJson& other, const std::string& path) {
  if (!closed.contains("additionalProperties") || closed["additionalProperties"] == true) return {};
  if (!other.contains("properties") || !other["properties"].is_object()) return {};
  for (const auto& [name, schema] : other["properties"].items()) {
    if (!closed.contains("properties") || !closed["properties"].contains(name)) {
      return input_error("schema " + path + ": property " + quote(name) +
                         " meets the additionalProperties of another part; name it in both");
    }
  }
  return {};
}

}  // namespace

SchemaJson without_nullable(SchemaJson schema) {
  if (!schema.is_object() || !schema.contains("nullable")) return schema;
  if (schema["nullable"] == true && schema.contains("type")) {
    SchemaJson types = as_list(schema["type"]);
    if (std::find(types.begin(), types.end(), "null") == types.end()) types.push_back("null");
    schema["type"] = std::move(types);
  }
  schema.erase("nullable");
  return schema;
}

Result<SchemaJson> merge_schemas(const SchemaJson& a, const SchemaJson& b, const std::string& path) {
  if (a == false || b == false) return SchemaJson(false);
  if (a.is_boolean()) return b;
  if (b.is_boolean()) return a;
  OUTRIDER_RETURN_IF_ERROR(check_closed(a, b, path));
  OUTRIDER_RETURN_IF_ERROR(check_closed(b, a, path));
  SchemaJson merged = a;
  for (const auto& [keyword, value] : b.items()) {
    if (!merged.contains(keyword)) {
      merged[keyword] = value;
      continue;
    }
    const bool is_annotation = keyword_role(keyword) == KeywordRole::kAnnotation || keyword == "format";
    if (merged[keyword] == value || is_annotation) continue;
    if (keyword == "const") return SchemaJson(false);
    SchemaJson joined = join(keyword, merged[keyword], value);
    if (joined.is_discarded()) {
      return input_error("schema " + path + ": two parts disagree on " + quote(keyword) +
                         ", which cannot be joined");
    }
    merged[keyword] = std::move(joined);
  }
  return merged;
}

}  // namespace outrider
