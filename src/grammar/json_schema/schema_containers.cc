// SPDX-License-Identifier: Apache-2.0
// Compiles objects and arrays.
#include <algorithm>
#include <bit>

#include "base/quote.h"
#include "grammar/json_schema/schema_compiler.h"
#include "grammar/json_schema/schema_keywords.h"

namespace outrider {

Result<GrammarExpr> SchemaCompiler::convert_member(const std::string& name, const SchemaJson& value,
                                                   const Place& place) {
  OUTRIDER_TRY(const GrammarExpr expression, convert(value, place));
  const auto key = text_.spelled_name(name, SchemaJson(name).dump());
  if (!key) return unsupported(place, "the notation has no such name");
  return text_.member(builder_.literal(*key), expression);
}

Result<std::vector<SchemaCompiler::Property>> SchemaCompiler::convert_properties(
    const SchemaJson& schema, const MemberMaker& make_member, const Place& place) {
  const SchemaJson none = SchemaJson::object();
  const SchemaJson& listed = schema.contains("properties") ? schema["properties"] : none;
  if (!listed.is_object()) return error(place.member("properties"), "expected an object of schemas");
  const SchemaJson required =
      schema.contains("required") ? schema["required"] : SchemaJson(SchemaJson::array());
  const bool are_strings =
      required.is_array() &&
      std::all_of(required.begin(), required.end(), [](const SchemaJson& name) { return name.is_string(); });
  if (!are_strings) return error(place.member("required"), "expected a list of names");
  std::set<std::string> wanted(required.begin(), required.end());
  std::vector<Property> properties;
  const auto add = [&](const std::string& name, const SchemaJson& value, const Place& at) -> Status {
    OUTRIDER_TRY(const GrammarExpr member, make_member(name, value, at));
    // A rule, because it is used in several places.
    properties.push_back({name, builder_.rule("member " + name, member), wanted.erase(name) > 0});
    return {};
  };
  for (const auto& [name, value] : listed.items()) {
    OUTRIDER_RETURN_IF_ERROR(add(name, value, place.member("properties").member(name)));
  }
  // Required names without a schema get the schema of additionalProperties.
  const SchemaJson extra =
      schema.contains("additionalProperties") ? schema["additionalProperties"] : SchemaJson(true);
  for (const SchemaJson& name : required) {
    if (!wanted.contains(name.get_ref<const std::string&>())) continue;
    OUTRIDER_RETURN_IF_ERROR(add(name.get_ref<const std::string&>(), extra, place.member("required")));
  }
  return properties;
}

Result<std::optional<GrammarExpr>> SchemaCompiler::convert_names(const SchemaJson& schema,
                                                                 const Place& place) {
  using Found = std::optional<GrammarExpr>;
  if (!schema.contains("propertyNames")) return Found(std::nullopt);
  const Place at = place.member("propertyNames");
  OUTRIDER_TRY(SchemaJson names, flatten(schema["propertyNames"], at));
  if (names == true) return Found(std::nullopt);
  if (names.is_object()) {
    const bool says_something = std::ranges::any_of(names.items(), [](const auto& item) {
      return item.key() != "type" && keyword_role(item.key()) != KeywordRole::kAnnotation;
    });
    if (!names.contains("type")) names["type"] = "string";
    if (!says_something && names["type"] == "string") return Found(std::nullopt);
  }
  OUTRIDER_TRY(const GrammarExpr name, convert(names, at));
  return Found(name);
}

Result<std::optional<GrammarExpr>> SchemaCompiler::convert_extra(const SchemaJson& schema,
                                                                 const std::vector<Property>& properties,
                                                                 const Place& place) {
  using Found = std::optional<GrammarExpr>;
  const bool is_given = schema.contains("additionalProperties");
  if (!is_given && !properties.empty()) return Found(std::nullopt);
  const SchemaJson allowed = is_given ? schema["additionalProperties"] : SchemaJson(true);
  if (allowed == false) return Found(std::nullopt);
  OUTRIDER_TRY(const GrammarExpr value, convert(allowed, place.member("additionalProperties")));
  OUTRIDER_TRY(const std::optional<GrammarExpr> names_allowed, convert_names(schema, place));
  if (names_allowed && text_.is_bare())
    return unsupported(place.member("propertyNames"), "the notation has no such names");
  if (names_allowed && !properties.empty())
    return unsupported(place.member("propertyNames"), "is not supported beside named properties");
  std::vector<std::string> names;
  for (const Property& property : properties) names.push_back(property.name);
  const bool is_any = names.empty() && !text_.is_bare();
  const GrammarExpr key = names_allowed ? *names_allowed : is_any ? text_.string() : text_.other_name(names);
  return Found(builder_.rule("other member", text_.member(key, value)));
}

Result<GrammarExpr> SchemaCompiler::convert_object(const SchemaJson& schema, const Place& place) {
  const auto make_member = [this](const std::string& name, const SchemaJson& value, const Place& at) {
    return convert_member(name, value, at);
  };
  OUTRIDER_TRY(const std::vector<Property> properties, convert_properties(schema, make_member, place));
  OUTRIDER_TRY(const std::optional<GrammarExpr> extra, convert_extra(schema, properties, place));
  const auto required = std::ranges::count_if(properties, &Property::is_required);
  OUTRIDER_TRY(const int32_t min, count_at(schema, "minProperties", place));
  OUTRIDER_TRY(const int32_t max, count_at(schema, "maxProperties", place));
  if (properties.empty()) {
    if (!extra) return min > 0 ? builder_.nothing() : text_.members(builder_.empty());
    if (max >= 0 && min > max) return builder_.nothing();
    return builder_.rule("object", text_.members(text_.list(*extra, std::max(min, 0), max)));
  }
  const bool has_too_few =
      (!extra && min > static_cast<int64_t>(properties.size())) || (max >= 0 && min > max);
  if (has_too_few || (max >= 0 && required > max)) return builder_.nothing();
  if (min > required) {
    return unsupported(place.member("minProperties"), "more than the required properties is not supported");
  }
  if (max >= 0 && (extra || max < static_cast<int64_t>(properties.size()))) {
    return unsupported(place.member("maxProperties"),
                       "fewer than the properties there can be is not supported");
  }
  return builder_.rule("object",
                       text_.members(members_in_order(properties, extra, text_.comma(), text_.whitespace())));
}

// Two rules per property describe the members from it on, with and without an earlier member.
GrammarExpr SchemaCompiler::members_in_order(const std::vector<Property>& properties,
                                             std::optional<GrammarExpr> extra, GrammarExpr comma,
                                             GrammarExpr end) {
  const GrammarExpr none = builder_.empty();
  const GrammarExpr more_extra =
      extra ? builder_.repeat(builder_.sequence({comma, *extra}), 0, GrammarBuilder::kUnbounded) : none;
  GrammarExpr rest = builder_.rule("members", builder_.sequence({more_extra, end}));
  GrammarExpr first = extra ? builder_.optional(builder_.sequence({*extra, more_extra, end})) : none;
  for (size_t i = properties.size(); i-- > 0;) {
    const Property& property = properties[i];
    const GrammarExpr here = builder_.sequence({property.member, rest});
    const GrammarExpr after_comma = builder_.sequence({comma, here});
    first = builder_.rule("members", property.is_required ? here : builder_.choice({here, first}));
    rest =
        builder_.rule("members", property.is_required ? after_comma : builder_.choice({after_comma, rest}));
  }
  return first;
}

Result<GrammarExpr> SchemaCompiler::convert_array(const SchemaJson& schema, const Place& place) {
  OUTRIDER_TRY(const int32_t least, count_at(schema, "minItems", place));
  OUTRIDER_TRY(const int32_t max, count_at(schema, "maxItems", place));
  const int32_t min = std::max(least, 0);
  if (max >= 0 && min > max) return builder_.nothing();
  if (schema.contains("uniqueItems") && schema["uniqueItems"] != false && (max < 0 || max > 1))
    return convert_unique(schema, min, max, place);
  // Before draft 2020-12, a list in items meant prefixItems, and additionalItems meant items.
  const bool is_old = schema.contains("items") && schema["items"].is_array();
  const char* const prefix_keyword = is_old ? "items" : "prefixItems";
  const char* const rest_keyword = is_old ? "additionalItems" : "items";
  std::vector<GrammarExpr> prefix;
  if (schema.contains(prefix_keyword)) {
    const SchemaJson& list = schema[prefix_keyword];
    if (!list.is_array()) return error(place.member(prefix_keyword), "expected a list of schemas");
    for (size_t i = 0; i < list.size(); ++i) {
      OUTRIDER_TRY(const GrammarExpr item, convert(list[i], place.member(prefix_keyword).element(i)));
      prefix.push_back(builder_.rule("item", item));
    }
  }
  const bool is_given = schema.contains(rest_keyword);
  const bool is_open = is_given || prefix.empty() || min > static_cast<int32_t>(prefix.size());
  const SchemaJson rest_schema = is_given ? schema[rest_keyword] : SchemaJson(is_open);
  std::optional<GrammarExpr> rest;
  if (rest_schema != false) {
    OUTRIDER_TRY(const GrammarExpr item, convert(rest_schema, place.member(rest_keyword)));
    rest = builder_.rule("item", item);
  }
  return builder_.rule("array", text_.elements(elements_in_order(prefix, rest, min, max)));
}

Status SchemaCompiler::list_values(const SchemaJson& schema, const Place& place,
                                   std::vector<SchemaJson>& values) {
  OUTRIDER_TRY(const SchemaJson flat, flatten(schema, place));
  std::vector<SchemaJson> listed;
  if (flat.is_object() && (flat.contains("anyOf") || flat.contains("oneOf")) && flat.size() == 1) {
    const std::string keyword = flat.contains("anyOf") ? "anyOf" : "oneOf";
    const SchemaJson& parts = flat[keyword];
    for (size_t i = 0; i < parts.size(); ++i)
      OUTRIDER_RETURN_IF_ERROR(list_values(parts[i], place.member(keyword).element(i), values));
    return {};
  }
  if (flat.is_object() && (flat.contains("enum") || flat.contains("const"))) {
    OUTRIDER_TRY(listed, valid_values(flat, place));
  } else if (flat.is_object() && flat.contains("type") && flat["type"] == "boolean") {
    listed = {true, false};
  } else if (flat.is_object() && flat.contains("type") && flat["type"] == "null") {
    listed = {nullptr};
  } else {
    return unsupported(place, "uniqueItems needs items that are listed by enum or const");
  }
  for (SchemaJson& value : listed) {
    if (std::ranges::find(values, value) == values.end()) values.push_back(std::move(value));
  }
  return {};
}

Result<GrammarExpr> SchemaCompiler::convert_unique(const SchemaJson& schema, int32_t min, int32_t max,
                                                   const Place& place) {
  constexpr size_t kMaxInAnyOrder = 8, kMaxValues = 128;
  const bool has_places =
      schema.contains("prefixItems") || !schema.contains("items") || schema["items"].is_array();
  if (has_places)
    return unsupported(place.member("uniqueItems"), "needs items that are listed by enum or const");
  std::vector<SchemaJson> values;
  OUTRIDER_RETURN_IF_ERROR(list_values(schema["items"], place.member("items"), values));
  if (values.size() > kMaxValues)
    return unsupported(place.member("uniqueItems"), "is supported for up to 128 values");
  const auto least = static_cast<size_t>(min);
  const size_t most = max < 0 ? values.size() : std::min(values.size(), static_cast<size_t>(max));
  if (least > most) return builder_.nothing();
  std::vector<GrammarExpr> texts;
  for (const SchemaJson& value : values) texts.push_back(constant(value));
  const GrammarExpr inside = values.size() <= kMaxInAnyOrder ? unique_in_any_order(texts, least, most)
                                                             : unique_in_order(texts, least, most);
  return builder_.rule("list of distinct values", text_.elements(inside));
}

// A rule for each set of values that are taken, from the largest set on.
GrammarExpr SchemaCompiler::unique_in_any_order(const std::vector<GrammarExpr>& values, size_t min,
                                                size_t max) {
  std::vector<GrammarExpr> after(size_t{1} << values.size());  // what follows when these values are taken
  for (size_t taken = after.size(); taken-- > 0;) {
    const auto count = static_cast<size_t>(std::popcount(taken));
    std::vector<GrammarExpr> choices;
    if (count >= min) choices.push_back(count == 0 ? builder_.empty() : text_.whitespace());
    for (size_t i = 0; i < values.size() && count < max; ++i) {
      if ((taken >> i & 1) != 0) continue;
      const GrammarExpr next = after[taken | size_t{1} << i];
      choices.push_back(count == 0 ? builder_.sequence({values[i], next})
                                   : builder_.sequence({text_.comma(), values[i], next}));
    }
    after[taken] = builder_.rule("distinct values", builder_.choice(std::move(choices)));
  }
  return after[0];
}

// after[count]: the text that may follow when `count` of the values before the current one are taken.
GrammarExpr SchemaCompiler::unique_in_order(const std::vector<GrammarExpr>& values, size_t min, size_t max) {
  std::vector<GrammarExpr> after(values.size() + 2, builder_.nothing());
  for (size_t count = min; count <= max; ++count)
    after[count] = count == 0 ? builder_.empty() : text_.whitespace();
  for (size_t i = values.size(); i-- > 0;) {
    for (size_t count = 0; count <= std::min(i, max); ++count) {
      const GrammarExpr taken = count == 0 ? builder_.sequence({values[i], after[1]})
                                           : builder_.sequence({text_.comma(), values[i], after[count + 1]});
      if (count < max)
        after[count] = builder_.rule("distinct values", builder_.choice({taken, after[count]}));
    }
  }
  return after[0];
}

GrammarExpr SchemaCompiler::elements_in_order(const std::vector<GrammarExpr>& prefix,
                                              std::optional<GrammarExpr> rest, int32_t min, int32_t max) {
  const auto count = static_cast<int32_t>(prefix.size());
  if (count == 0) {
    if (rest) return text_.list(*rest, min, max);
    return min > 0 ? builder_.nothing() : builder_.empty();
  }
  // From the last item to the first: the expression of the items from i on.
  GrammarExpr after = min > count ? builder_.nothing() : builder_.empty();
  if (rest && (max < 0 || max > count)) {
    after = builder_.repeat(builder_.sequence({text_.comma(), *rest}), std::max(0, min - count),
                            max < 0 ? GrammarBuilder::kUnbounded : max - count);
  }
  for (int32_t i = count - 1; i > 0; --i) {
    if (max >= 0 && i >= max) {
      after = builder_.empty();
      continue;
    }
    const GrammarExpr here = builder_.sequence({text_.comma(), prefix[i], after});
    after = builder_.rule("items", i < min ? here : builder_.optional(here));
  }
  if (max == 0) return builder_.empty();
  const GrammarExpr all = builder_.sequence({prefix[0], after, text_.whitespace()});
  return min > 0 ? all : builder_.optional(all);
}

}  // namespace outrider
