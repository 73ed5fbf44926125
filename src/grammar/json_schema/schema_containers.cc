// SPDX-License-Identifier: Apache-2.0
// Compiles objects and arrays.
#include <algorithm>

#include "base/quote.h"
#include "base/utf8.h"
#include "grammar/json_schema/schema_compiler.h"

namespace outrider {

Result<std::vector<SchemaCompiler::Property>> SchemaCompiler::convert_properties(const SchemaJson& schema,
                                                                                 const Place& place) {
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
    OUTRIDER_TRY(const GrammarExpr expression, convert(value, at));
    const GrammarExpr key = builder_.literal(SchemaJson(name).dump());
    // A rule, because it is used in several places.
    properties.push_back(
        {name, builder_.rule("member " + name, text_.member(key, expression)), wanted.erase(name) > 0});
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

Result<std::optional<GrammarExpr>> SchemaCompiler::convert_extra(const SchemaJson& schema,
                                                                 const std::vector<Property>& properties,
                                                                 const Place& place) {
  using Found = std::optional<GrammarExpr>;
  const bool is_given = schema.contains("additionalProperties");
  if (!is_given && !properties.empty()) return Found(std::nullopt);
  const SchemaJson allowed = is_given ? schema["additionalProperties"] : SchemaJson(true);
  if (allowed == false) return Found(std::nullopt);
  OUTRIDER_TRY(const GrammarExpr value, convert(allowed, place.member("additionalProperties")));
  GrammarExpr key = text_.string();
  if (!properties.empty()) {
    std::vector<std::u32string> names;
    for (const Property& property : properties) {
      std::u32string name;
      bool is_plain = true;
      for (std::string_view rest = property.name; !rest.empty() && is_plain;) {
        const utf8::CodePoint character = utf8::decode(rest);
        is_plain = character.length > 0 && JsonText::plain_characters().contains(character.value);
        name += static_cast<char32_t>(character.value);
        rest.remove_prefix(std::max(character.length, 1));
      }
      if (is_plain) names.push_back(name);
    }
    key = builder_.rule("other name", text_.quoted(builder_.none_of(names, JsonText::plain_characters())));
  }
  return Found(builder_.rule("other member", text_.member(key, value)));
}

Result<GrammarExpr> SchemaCompiler::convert_object(const SchemaJson& schema, const Place& place) {
  OUTRIDER_TRY(const std::vector<Property> properties, convert_properties(schema, place));
  OUTRIDER_TRY(const std::optional<GrammarExpr> extra, convert_extra(schema, properties, place));
  OUTRIDER_TRY(const int32_t min, count_at(schema, "minProperties", place));
  OUTRIDER_TRY(const int32_t max, count_at(schema, "maxProperties", place));
  if (properties.empty()) {
    if (!extra) return min > 0 ? builder_.nothing() : text_.members(builder_.empty());
    if (max >= 0 && min > max) return builder_.nothing();
    return builder_.rule("object", text_.members(text_.list(*extra, std::max(min, 0), max)));
  }
  const auto required = std::count_if(properties.begin(), properties.end(),
                                      [](const Property& property) { return property.is_required; });
  if (min > required) {
    return error(place.member("minProperties"), "more than the required properties is not supported");
  }
  if (max >= 0 && (extra || max < static_cast<int64_t>(properties.size()))) {
    return error(place.member("maxProperties"), "fewer than the properties there can be is not supported");
  }
  return builder_.rule("object", text_.members(members_in_order(properties, extra)));
}

// Two rules per property describe the members from it on, with and without an earlier member.
GrammarExpr SchemaCompiler::members_in_order(const std::vector<Property>& properties,
                                             std::optional<GrammarExpr> extra) {
  const GrammarExpr none = builder_.empty();
  const GrammarExpr more_extra =
      extra ? builder_.repeat(builder_.sequence({text_.comma(), *extra}), 0, GrammarBuilder::kUnbounded)
            : none;
  GrammarExpr rest = builder_.rule("members", builder_.sequence({more_extra, text_.whitespace()}));
  GrammarExpr first = extra ? text_.list(*extra, 0, GrammarBuilder::kUnbounded) : none;
  for (size_t i = properties.size(); i-- > 0;) {
    const Property& property = properties[i];
    const GrammarExpr here = builder_.sequence({property.member, rest});
    const GrammarExpr after_comma = builder_.sequence({text_.comma(), here});
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
  if (schema.contains("uniqueItems") && schema["uniqueItems"] != false) {
    return error(place.member("uniqueItems"), "only false is supported");
  }
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
  if (max >= 0 && min > max) return builder_.nothing();
  return builder_.rule("array", text_.elements(elements_in_order(prefix, rest, min, max)));
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
