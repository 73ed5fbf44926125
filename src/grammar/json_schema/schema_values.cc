// SPDX-License-Identifier: Apache-2.0
// Compiles strings, numbers and constant values.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/quote.h"
#include "grammar/byte_automaton.h"
#include "grammar/json_schema/json_formats.h"
#include "grammar/json_schema/schema_compiler.h"
#include "grammar/json_schema/schema_keywords.h"
#include "grammar/regex_parser.h"

namespace outrider {
namespace {

constexpr int64_t kMaxMultiple = 1'000'000'000;

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

// Empty for true, false and null.
std::string_view type_of(const SchemaJson& value) {
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  return value.is_number() ? "number" : "";
}

bool accepts_text(const SharedGrammar& grammar, std::string_view text) {
  ByteAutomaton automaton(grammar, 1);
  ByteAutomaton::State state = automaton.start();
  for (const char byte : text) {
    if (state == ByteAutomaton::kDead) return false;
    state = automaton.advance(state, static_cast<uint8_t>(byte));
  }
  return state != ByteAutomaton::kDead && automaton.may_end(state);
}

}  // namespace

Result<SchemaCompiler::TypeRest> SchemaCompiler::rest_of_type(const SchemaJson& schema, std::string_view type,
                                                              const Place& place) {
  SchemaJson rest = SchemaJson::object();
  for (const auto& [keyword, other] : schema.items()) {
    if (keyword != "format" && restricted_type(keyword) == type) rest[keyword] = other;
  }
  if (rest.empty()) return TypeRest{};
  if (type == "object" || type == "array")
    return unsupported(place, "objects and lists in enum or const cannot be combined with other keywords");
  GrammarBuilder builder;
  SchemaCompiler compiler(builder, root_);
  const Result<GrammarExpr> expression = compiler.convert(rest, place);
  if (!expression.ok()) {
    is_unsupported_ = compiler.is_unsupported_;
    return expression.error();
  }
  Result<SharedGrammar> grammar = builder.build(*expression);
  return TypeRest{.restricts = true, .grammar = grammar.ok() ? std::move(grammar).value() : nullptr};
}

Result<std::vector<SchemaJson>> SchemaCompiler::valid_values(const SchemaJson& schema, const Place& place) {
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
  std::map<std::string_view, TypeRest> rests;  // by type
  std::vector<SchemaJson> valid;
  for (SchemaJson& value : values) {
    if (schema.contains("type") && !has_type(value, schema["type"])) continue;
    const std::string_view type = type_of(value);
    const auto [rest, is_new] = rests.try_emplace(type);
    if (is_new && !type.empty()) {
      OUTRIDER_TRY(rest->second, rest_of_type(schema, type, place));
    }
    const bool is_valid =
        !rest->second.restricts || (rest->second.grammar && accepts_text(rest->second.grammar, value.dump()));
    if (is_valid) valid.push_back(std::move(value));
  }
  return valid;
}

Result<GrammarExpr> SchemaCompiler::convert_values(const SchemaJson& schema, const Place& place) {
  OUTRIDER_TRY(const std::vector<SchemaJson> values, valid_values(schema, place));
  std::vector<std::string> texts;
  std::vector<GrammarExpr> choices;
  for (const SchemaJson& value : values) {
    if (value.is_structured()) {
      choices.push_back(constant(value));
    } else if (auto text = spelled(value)) {
      texts.push_back(std::move(*text));
      const auto other = value.is_string() ? text_.single_quoted(value.get<std::string>()) : std::nullopt;
      if (other) texts.push_back(*other);
    }
  }
  choices.push_back(builder_.one_of(std::move(texts)));
  return builder_.choice(std::move(choices));
}

std::optional<std::string> SchemaCompiler::spelled(const SchemaJson& value) const {
  if (value.is_boolean()) return std::string(text_.word(value.get<bool>()));
  if (value.is_null()) return std::string(text_.null_word());
  if (!value.is_string()) return value.dump();
  return text_.spelled_text(value.get<std::string>(), value.dump());
}

// The texts of a constant value, with optional white space.
GrammarExpr SchemaCompiler::constant(const SchemaJson& value) {
  if (!value.is_structured()) {
    const auto text = spelled(value);
    return text ? builder_.literal(*text) : builder_.nothing();
  }
  std::vector<GrammarExpr> parts;
  for (const auto& [name, part] : value.items()) {
    if (!parts.empty()) parts.push_back(text_.comma());
    if (!value.is_object()) {
      parts.push_back(constant(part));
    } else if (const auto key = text_.spelled_name(name, SchemaJson(name).dump())) {
      parts.push_back(text_.member(builder_.literal(*key), constant(part)));
    } else {
      return builder_.nothing();
    }
  }
  if (!parts.empty()) parts.push_back(text_.whitespace());
  const GrammarExpr inside = builder_.sequence(std::move(parts));
  return value.is_object() ? text_.members(inside) : text_.elements(inside);
}

// A format is an annotation: one without an expression here, and one beside a pattern or lengths, says
// nothing.
Result<GrammarExpr> SchemaCompiler::convert_string(const SchemaJson& schema, const Place& place) {
  OUTRIDER_TRY(const int32_t min, count_at(schema, "minLength", place));
  OUTRIDER_TRY(const int32_t max, count_at(schema, "maxLength", place));
  if (max >= 0 && min > max) return builder_.nothing();
  const bool has_lengths = min > 0 || max >= 0;
  RegexOptions options;
  options.character = [this](const CodePointSet& set) { return text_.character(set); };
  std::optional<std::string> pattern;
  Place where = place;
  if (schema.contains("pattern")) {
    where = place.member("pattern");
    if (!schema["pattern"].is_string()) return error(where, "expected a string");
    if (has_lengths)
      return unsupported(where, "pattern and lengths cannot be combined; say the length in the pattern");
    pattern = schema["pattern"].get<std::string>();
    options.is_search = true;
  } else if (schema.contains("format") && !has_lengths) {
    where = place.member("format");
    if (!schema["format"].is_string()) return error(where, "expected a string");
    pattern = json_format_pattern(schema["format"].get_ref<const std::string&>());
  }
  if (!pattern) return text_.string(std::max(min, 0), max);
  const auto inside = regex_expression(builder_, *pattern, options);
  if (!inside.ok()) return unsupported(where, inside.error().message);
  return builder_.rule("string of a pattern", text_.quoted(*inside));
}

Result<NumberBounds> SchemaCompiler::number_bounds(const SchemaJson& schema, const Place& place) const {
  NumberBounds bounds;
  for (const char* keyword : {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}) {
    if (!schema.contains(keyword) || schema[keyword].is_boolean()) continue;
    const SchemaJson& value = schema[keyword];
    const bool is_low = std::string_view(keyword).ends_with("inimum");
    if (!value.is_number()) return error(place.member(keyword), "expected a number");
    const auto number = parse_decimal(value.dump());
    // A bound beyond all numbers that can be written says nothing.
    const double beyond = std::pow(10.0, JsonText::kDigits);
    if (!number && (is_low ? value.get<double>() <= -beyond : value.get<double>() >= beyond)) continue;
    if (!number) {
      return unsupported(place.member(keyword), "expected a number of at most " +
                                                    std::to_string(JsonText::kDigits) +
                                                    " digits before and after the point");
    }
    // Before draft 6, "exclusiveMinimum": true was about "minimum".
    const std::string flag = is_low ? "exclusiveMinimum" : "exclusiveMaximum";
    const bool is_flagged = schema.contains(flag) && schema[flag] == true;
    const NumberBounds::Bound bound{*number, keyword[0] == 'e' || is_flagged};
    std::optional<NumberBounds::Bound>& known = is_low ? bounds.low : bounds.high;
    const bool is_narrower =
        !known || (is_low ? known->value < bound.value : bound.value < known->value) ||
        (!(known->value < bound.value) && !(bound.value < known->value) && bound.is_exclusive);
    if (is_narrower) known = bound;
  }
  return bounds;
}

Result<GrammarExpr> SchemaCompiler::convert_number(const SchemaJson& schema, bool is_integer,
                                                   const Place& place) {
  OUTRIDER_TRY(const NumberBounds bounds, number_bounds(schema, place));
  if (schema.contains("multipleOf")) {
    const SchemaJson& factor = schema["multipleOf"];
    if (!factor.is_number() || factor.get<double>() <= 0)
      return error(place.member("multipleOf"), "expected a number above 0");
    if (factor.get<double>() != std::floor(factor.get<double>()) || factor.get<double>() > kMaxMultiple) {
      return unsupported(place.member("multipleOf"),
                         "only whole numbers up to " + std::to_string(kMaxMultiple) + " are supported");
    }
    is_integer = true;
    if (factor != 1) {
      return builder_.rule("multiple in a range",
                           multiple_range(builder_, static_cast<int64_t>(factor.get<double>()), bounds));
    }
  }
  if (!bounds.low && !bounds.high) return is_integer ? text_.integer() : text_.number();
  return builder_.rule(is_integer ? "integer in a range" : "number in a range",
                       is_integer ? integer_range(builder_, bounds) : number_range(builder_, bounds));
}

}  // namespace outrider
