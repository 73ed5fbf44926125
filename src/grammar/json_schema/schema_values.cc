// SPDX-License-Identifier: Apache-2.0
// Compiles strings, numbers and constant values.
#include <algorithm>

#include "base/quote.h"
#include "grammar/json_schema/json_formats.h"
#include "grammar/json_schema/schema_compiler.h"
#include "grammar/regex_parser.h"

namespace outrider {
namespace {

bool has_type(const SchemaJson& value, const SchemaJson& type) {
  if (type.is_array()) {
    return std::any_of(type.begin(), type.end(), [&](const SchemaJson& one) { return has_type(value, one); });
  }
  if (type == "integer") {
    return value.is_number_integer() ||
           (value.is_number_float() &&
            value.get<double>() ==
                static_cast<double>(static_cast<int64_t>(std::clamp(value.get<double>(), -9e15, 9e15))));
  }
  return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
         (type == "string" && value.is_string()) || (type == "number" && value.is_number()) ||
         (type == "boolean" && value.is_boolean()) || (type == "null" && value.is_null());
}

}  // namespace

Result<GrammarExpr> SchemaCompiler::convert_values(const SchemaJson& schema, const Place& place) {
  for (const auto& [keyword, value] : schema.items()) {
    if (keyword != "enum" && keyword != "const" && keyword != "type" && !is_annotation(keyword)) {
      return error(place.member(keyword), "cannot be combined with enum or const");
    }
  }
  SchemaJson values = SchemaJson::array();
  if (schema.contains("enum")) {
    values = schema["enum"];
    if (!values.is_array()) return error(place.member("enum"), "expected a list of values");
    if (schema.contains("const")) {
      const bool has_it = std::find(values.begin(), values.end(), schema["const"]) != values.end();
      values = has_it ? SchemaJson::array({schema["const"]}) : SchemaJson::array();
    }
  } else {
    values.push_back(schema["const"]);
  }
  std::vector<std::string> texts;
  std::vector<GrammarExpr> choices;
  for (const SchemaJson& value : values) {
    if (schema.contains("type") && !has_type(value, schema["type"])) continue;
    if (value.is_structured()) {
      choices.push_back(constant(value));
    } else {
      texts.push_back(value.dump());
    }
  }
  choices.push_back(builder_.one_of(std::move(texts)));
  return builder_.choice(std::move(choices));
}

// The texts of a constant value, with optional white space.
GrammarExpr SchemaCompiler::constant(const SchemaJson& value) {
  if (!value.is_structured()) return builder_.literal(value.dump());
  std::vector<GrammarExpr> parts;
  for (const auto& [name, part] : value.items()) {
    if (!parts.empty()) parts.push_back(text_.comma());
    parts.push_back(value.is_object()
                        ? text_.member(builder_.literal(SchemaJson(name).dump()), constant(part))
                        : constant(part));
  }
  if (!parts.empty()) parts.push_back(text_.whitespace());
  const GrammarExpr inside = builder_.sequence(std::move(parts));
  return value.is_object() ? text_.members(inside) : text_.elements(inside);
}

Result<GrammarExpr> SchemaCompiler::convert_string(const SchemaJson& schema, const Place& place) {
  OUTRIDER_TRY(const int32_t min, count_at(schema, "minLength", place));
  OUTRIDER_TRY(const int32_t max, count_at(schema, "maxLength", place));
  RegexOptions options;
  options.character = [this](const CodePointSet& set) { return text_.character(set); };
  std::string pattern;
  Place where = place;
  if (schema.contains("pattern")) {
    where = place.member("pattern");
    if (!schema["pattern"].is_string()) return error(where, "expected a string");
    pattern = schema["pattern"].get<std::string>();
    options.is_search = true;
  } else if (schema.contains("format")) {
    where = place.member("format");
    if (!schema["format"].is_string()) return error(where, "expected a string");
    const auto known = json_format_pattern(schema["format"].get_ref<const std::string&>());
    if (!known) {
      return error(where, "format " + quote(schema["format"].get_ref<const std::string&>()) +
                              " is not supported; supported: " + supported_json_formats());
    }
    pattern = *known;
  } else {
    if (max >= 0 && min > max) return builder_.nothing();
    return text_.string(std::max(min, 0), max);
  }
  if (min > 0 || max >= 0 || (schema.contains("pattern") && schema.contains("format"))) {
    return error(where, "pattern, format and lengths cannot be combined; say the length in the pattern");
  }
  const auto inside = regex_expression(builder_, pattern, options);
  if (!inside.ok()) return error(where, inside.error().message);
  return builder_.rule("string of a pattern", text_.quoted(*inside));
}

Result<GrammarExpr> SchemaCompiler::convert_number(const SchemaJson& schema, bool is_integer,
                                                   const Place& place) {
  if (schema.contains("multipleOf")) {
    if (schema["multipleOf"] != 1) return error(place.member("multipleOf"), "only 1 is supported");
    is_integer = true;
  }
  NumberBounds bounds;
  for (const char* keyword : {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}) {
    if (!schema.contains(keyword)) continue;
    const SchemaJson& value = schema[keyword];
    const bool is_low = std::string_view(keyword).ends_with("inimum");
    const auto number = value.is_number() ? parse_decimal(value.dump()) : std::nullopt;
    if (!number) {
      return error(place.member(keyword), "expected a number of at most " +
                                              std::to_string(JsonText::kDigits) +
                                              " digits before and after the point");
    }
    const NumberBounds::Bound bound{*number, keyword[0] == 'e'};
    std::optional<NumberBounds::Bound>& known = is_low ? bounds.low : bounds.high;
    const bool is_narrower =
        !known || (is_low ? known->value < bound.value : bound.value < known->value) ||
        (!(known->value < bound.value) && !(bound.value < known->value) && bound.is_exclusive);
    if (is_narrower) known = bound;
  }
  if (!bounds.low && !bounds.high) return is_integer ? text_.integer() : text_.number();
  return builder_.rule(is_integer ? "integer in a range" : "number in a range",
                       is_integer ? integer_range(builder_, bounds) : number_range(builder_, bounds));
}

}  // namespace outrider
