// SPDX-License-Identifier: Apache-2.0
// Compiles the arguments of calls that are no JSON: an object whose members have the marks of a notation.
#include <algorithm>

#include "grammar/json_schema/schema_compiler.h"
#include "grammar/json_schema/schema_keywords.h"

namespace outrider {
namespace {

// Kinds of values, as bits. Readers of calls tell texts from other values by these, too.
constexpr uint8_t kText = 1;
constexpr uint8_t kBoolean = 2;
constexpr uint8_t kNull = 4;
constexpr uint8_t kOther = 8;

uint8_t kind_of(const SchemaJson& value) {
  if (value.is_string()) return kText;
  if (value.is_boolean()) return kBoolean;
  return value.is_null() ? kNull : kOther;
}

uint8_t kind_named(const SchemaJson& type) {
  if (type == "string") return kText;
  if (type == "boolean") return kBoolean;
  return type == "null" ? kNull : kOther;
}

bool is_plain_object(const SchemaJson& schema) {
  if (!schema.is_object()) return false;
  for (const char* keyword :
       {"anyOf", "oneOf", "enum", "const", "propertyNames", "minProperties", "maxProperties"}) {
    if (schema.contains(keyword)) return false;
  }
  return !schema.contains("type") || schema["type"] == "object";
}

}  // namespace

Result<uint8_t> SchemaCompiler::value_kinds(const SchemaJson& schema, const Place& place) {
  OUTRIDER_TRY(const SchemaJson flat, flatten(schema, place));
  uint8_t kinds = 0;
  if (!flat.is_object()) return kinds;
  const SchemaJson none = SchemaJson::array();
  const SchemaJson types = flat.contains("type") ? flat["type"] : none;
  if (types.is_string()) kinds |= kind_named(types);
  if (types.is_array()) {
    for (const SchemaJson& type : types) kinds |= kind_named(type);
  }
  if (flat.contains("const")) kinds |= kind_of(flat["const"]);
  if (flat.contains("enum")) {
    for (const SchemaJson& value : flat["enum"]) kinds |= kind_of(value);
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (!flat.contains(keyword) || !flat[keyword].is_array()) continue;
    const Place list = place.member(keyword);
    for (size_t i = 0; i < flat[keyword].size(); ++i) {
      OUTRIDER_TRY(const uint8_t more, value_kinds(flat[keyword][i], list.element(i)));
      kinds |= more;
    }
  }
  return kinds;
}

// Texts that stand as they are.
Result<GrammarExpr> SchemaCompiler::convert_text(const ArgumentNotation& notation, const SchemaJson& schema,
                                                 const Place& place) {
  SchemaCompiler texts(builder_, root_, {.quote = notation.text_end, .is_one_line = notation.is_one_line});
  Result<GrammarExpr> value = texts.convert(schema, place);
  is_unsupported_ = is_unsupported_ || texts.is_unsupported_;
  if (!value.ok()) return value.error();
  return *value;
}

// A text that could also be read as another value is allowed only where the schema allows this value, too.
Result<SchemaCompiler::Argument> SchemaCompiler::convert_argument(const ArgumentNotation& notation,
                                                                  const SchemaJson& schema,
                                                                  const Place& place) {
  if (notation.text_end.empty()) {
    OUTRIDER_TRY(const GrammarExpr value, convert(schema, place));
    return Argument{.value = value};
  }
  OUTRIDER_TRY(const uint8_t kinds, value_kinds(schema, place));
  if (kinds != 0 && (kinds & kText) == 0) {
    OUTRIDER_TRY(const GrammarExpr value, convert(schema, place));
    // Templates with Jinja's spelling of booleans show these words.
    const bool is_any = schema.is_object() && schema.contains("type") && kinds == kBoolean;
    return Argument{.value = is_any && !schema.contains("enum") && !schema.contains("const")
                                 ? builder_.choice({value, builder_.one_of({"True", "False"})})
                                 : value};
  }
  const bool is_other =
      kinds == 0 && schema.is_object() && std::ranges::any_of(schema.items(), [](const auto& item) {
        const std::string_view type = restricted_type(item.key());
        return !type.empty() && type != "string";
      });
  if (is_other || (kinds & kOther) != 0)
    return unsupported(place, "a text and other values cannot be told apart");
  const bool says_nothing = !schema.is_object() || std::ranges::all_of(schema.items(), [](const auto& item) {
    return keyword_role(item.key()) == KeywordRole::kAnnotation;
  });
  if (says_nothing && schema != false)
    return Argument{.value = builder_.text_without(notation.text_end), .is_text = true};
  OUTRIDER_TRY(const GrammarExpr value, convert_text(notation, schema, place));
  return Argument{.value = value, .is_text = true};
}

// The value with the mark before it. A notation that tells texts from other values may have both.
Result<GrammarExpr> SchemaCompiler::argument_value(const ArgumentNotation& notation, const SchemaJson& schema,
                                                   const Place& place) {
  OUTRIDER_TRY(const uint8_t kinds, value_kinds(schema, place));
  if (!notation.tells_texts || (kinds & kText) == 0 || kinds == kText) {
    OUTRIDER_TRY(const Argument argument, convert_argument(notation, schema, place));
    return builder_.sequence(
        {argument.is_text ? notation.before_text : notation.before_value, argument.value});
  }
  const SchemaJson text = SchemaJson::object({{"type", "string"}});
  const SchemaJson others =
      SchemaJson::object({{"type", SchemaJson::array({"number", "boolean", "null", "object", "array"})}});
  OUTRIDER_TRY(const SchemaJson flat, flatten(schema, place));
  OUTRIDER_TRY(const SchemaJson text_schema, merge(flat, text, place.path));
  OUTRIDER_TRY(const SchemaJson other_schema, merge(flat, others, place.path));
  OUTRIDER_TRY(const GrammarExpr said, convert_text(notation, text_schema, place));
  OUTRIDER_TRY(const GrammarExpr other, convert(other_schema, place));
  return builder_.choice(
      {builder_.sequence({notation.before_text, said}), builder_.sequence({notation.before_value, other})});
}

Result<GrammarExpr> SchemaCompiler::argument_member(const ArgumentNotation& notation, GrammarExpr name,
                                                    const SchemaJson& schema, const Place& place) {
  OUTRIDER_TRY(const GrammarExpr value, argument_value(notation, schema, place));
  return builder_.sequence({notation.before_name, name, value, notation.after_value});
}

Result<GrammarExpr> SchemaCompiler::run_arguments(const ArgumentNotation& notation) {
  const Place place{"$", 0};
  OUTRIDER_TRY(const SchemaJson flat, flatten(root_, place));
  if (!is_plain_object(flat)) return unsupported(place, "expected an object with members");
  const JsonText bare(builder_, {.quote = " "});  // for names
  const auto make_member = [&](const std::string& name, const SchemaJson& value,
                               const Place& at) -> Result<GrammarExpr> {
    const auto spelling = bare.spelled_name(name, {});
    if (!spelling) return unsupported(at, "the notation has no such name");
    return argument_member(notation, builder_.literal(*spelling), value, at);
  };
  OUTRIDER_TRY(const std::vector<Property> properties, convert_properties(flat, make_member, place));
  const bool is_open = flat.contains("additionalProperties") ? flat["additionalProperties"] != false
                                                             : !flat.contains("properties");
  std::optional<GrammarExpr> extra;
  if (is_open) {
    const SchemaJson allowed =
        flat.contains("additionalProperties") ? flat["additionalProperties"] : SchemaJson(true);
    std::vector<std::string> names;
    for (const Property& property : properties) names.push_back(property.name);
    const GrammarExpr name = JsonText(builder_, {.quote = " "}).other_name(names);
    OUTRIDER_TRY(const GrammarExpr member,
                 argument_member(notation, name, allowed, place.member("additionalProperties")));
    extra = builder_.rule("other member", member);
  }
  return members_in_order(properties, extra, notation.separator, builder_.empty());
}

}  // namespace outrider
