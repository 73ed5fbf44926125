// SPDX-License-Identifier: Apache-2.0
#include "grammar/json_schema/schema_compiler.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/quote.h"
#include "grammar/expression_analysis.h"
#include "grammar/json_schema/schema_keywords.h"

namespace outrider {
namespace {

constexpr size_t kMaxSchemas = 50'000;
constexpr int32_t kMaxCount = 1'000'000;  // limit of characters, items or properties

// In the order in which they are tried for a schema without "type".
constexpr std::string_view kTypes[] = {"object", "array", "string", "number"};

bool says_more_than(const SchemaJson& schema, std::string_view keyword) {
  for (const auto& [name, value] : schema.items()) {
    if (name != keyword && keyword_role(name) != KeywordRole::kAnnotation) return true;
  }
  return false;
}

// The pointer of a reference: its fragment without the percent-encoding of URIs. nullopt: it has another
// form.
std::optional<std::string> decoded_fragment(std::string_view fragment) {
  std::string decoded;
  for (size_t i = 0; i < fragment.size(); ++i) {
    if (fragment[i] != '%') {
      decoded += fragment[i];
      continue;
    }
    unsigned byte = 0;
    const std::string_view digits = fragment.substr(i + 1, 2);
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || code != std::errc() || end != digits.data() + 2) return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

// The schema with this "$anchor"; null: there is none.
const SchemaJson* find_anchor(const SchemaJson& schema, const std::string& anchor) {
  if (!schema.is_structured()) return nullptr;
  if (schema.is_object() && schema.contains("$anchor") && schema["$anchor"] == anchor) return &schema;
  for (const SchemaJson& part : schema) {
    if (const SchemaJson* found = find_anchor(part, anchor)) return found;
  }
  return nullptr;
}

// Precondition: `reference` begins with '#'. Null: there is no such part.
const SchemaJson* find_part(const SchemaJson& root, const std::string& reference) {
  const auto pointer = decoded_fragment(std::string_view(reference).substr(1));
  if (!pointer) return nullptr;
  if (!pointer->empty() && !pointer->starts_with('/')) return find_anchor(root, *pointer);
  try {
    return &root.at(SchemaJson::json_pointer(*pointer));
  } catch (const SchemaJson::exception&) {
    return nullptr;
  }
}

// The nesting depth of a JSON text, computed before it is parsed.
int nesting(std::string_view json) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Error SchemaCompiler::error(const Place& place, const std::string& problem) {
  return input_error("schema " + printable(place.path) + ": " + problem);
}

Error SchemaCompiler::unsupported(const Place& place, const std::string& problem) const {
  is_unsupported_ = true;
  return error(place, problem);
}

Result<SchemaJson> SchemaCompiler::merge(const SchemaJson& a, const SchemaJson& b,
                                         const std::string& path) const {
  Result<SchemaJson> merged = merge_schemas(without_nullable(a), without_nullable(b), path);
  if (!merged.ok()) is_unsupported_ = true;
  return merged;
}

Result<GrammarExpr> SchemaCompiler::convert(const SchemaJson& schema, const Place& place) {
  OUTRIDER_RETURN_IF_ERROR(check_excess(place));
  if (place.depth > GrammarLimits::kNesting) {
    return error(place, "schemas nest deeper than " + std::to_string(GrammarLimits::kNesting));
  }
  if (schema.is_boolean()) return schema.get<bool>() ? text_.value() : builder_.nothing();
  if (!schema.is_object()) return error(place, "expected a schema: an object, true or false");
  OUTRIDER_RETURN_IF_ERROR(check_keywords(schema, place));
  if (schema.contains("nullable")) {
    return convert(without_nullable(schema), Place{place.path, place.depth + 1});
  }
  if (schema.contains("$ref") && !says_more_than(schema, "$ref")) {
    return convert_reference(schema["$ref"], place.member("$ref"));
  }
  if (schema.contains("$ref") || schema.contains("allOf")) {
    const bool is_wrapper = schema.contains("allOf") && !says_more_than(schema, "allOf") &&
                            schema["allOf"].is_array() && schema["allOf"].size() == 1;
    if (is_wrapper) return convert(schema["allOf"][0], place.member("allOf").element(0));
    OUTRIDER_TRY(const SchemaJson flat, flatten(schema, place));
    return convert(flat, Place{place.path, place.depth + 1});
  }
  if (schema.contains("anyOf")) return convert_alternatives(schema, "anyOf", place);
  if (schema.contains("oneOf")) return convert_alternatives(schema, "oneOf", place);
  if (schema.contains("enum") || schema.contains("const")) return convert_values(schema, place);
  return convert_types(schema, place);
}

Status SchemaCompiler::check_excess(const Place& place) {
  if (++converted_ > kMaxSchemas) return error(place, "the schema is too large");
  const std::string problem = builder_.excess();
  return problem.empty() ? Status() : Status(error(place, "the schema " + problem));
}

Status SchemaCompiler::check_keywords(const SchemaJson& schema, const Place& place) const {
  for (const auto& [keyword, value] : schema.items()) {
    if (keyword_role(keyword) == KeywordRole::kRefused)
      return unsupported(place.member(keyword), "this keyword is not supported");
    if (const auto meant = meant_keyword(keyword))
      return error(place.member(keyword), "there is no such keyword; " + quote(*meant) + " is near");
  }
  return {};
}

Result<const SchemaJson*> SchemaCompiler::resolve(const SchemaJson& reference, const Place& place) const {
  const SchemaJson* found = &root_;
  const SchemaJson* target = &reference;
  std::set<std::string> seen;
  for (;;) {
    if (!target->is_string()) return error(place, "expected a string");
    const auto& text = target->get_ref<const std::string&>();
    if (!text.starts_with('#')) {
      return unsupported(place,
                         "only references into this schema (#/...) are supported, found " + quote(text));
    }
    if (!seen.insert(text).second) return error(place, "the reference leads back to itself");
    found = find_part(root_, text);
    if (found == nullptr) return error(place, "there is no " + quote(text) + " in this schema");
    if (!found->is_object() || !found->contains("$ref") || says_more_than(*found, "$ref")) return found;
    target = &(*found)["$ref"];
  }
}

Result<GrammarExpr> SchemaCompiler::convert_reference(const SchemaJson& reference, const Place& place) {
  OUTRIDER_TRY(const SchemaJson* target, resolve(reference, place));
  const auto& name = reference.get_ref<const std::string&>();
  const auto known = rules_.find(name);
  if (known != rules_.end()) return builder_.reference(known->second);
  const int32_t rule = builder_.add_rule(name);
  rules_.emplace(name, rule);
  OUTRIDER_TRY(const GrammarExpr body, convert(*target, Place{name, place.depth + 1}));
  builder_.define(rule, body);
  return builder_.reference(rule);
}

Result<SchemaJson> SchemaCompiler::flatten(const SchemaJson& schema, const Place& place) {
  OUTRIDER_RETURN_IF_ERROR(check_excess(place));
  if (place.depth > GrammarLimits::kNesting) {
    return error(place, "allOf and $ref nest deeper than " + std::to_string(GrammarLimits::kNesting));
  }
  if (!schema.is_object()) {
    if (schema.is_boolean()) return schema;
    return error(place, "expected a schema: an object, true or false");
  }
  OUTRIDER_RETURN_IF_ERROR(check_keywords(schema, place));
  SchemaJson flat = without_nullable(schema);
  flat.erase("$ref");
  flat.erase("allOf");
  if (schema.contains("$ref")) {
    OUTRIDER_TRY(const SchemaJson* target, resolve(schema["$ref"], place.member("$ref")));
    OUTRIDER_TRY(const SchemaJson part, flatten(*target, place.member("$ref")));
    OUTRIDER_TRY(flat, merge(part, flat, place.path));
  }
  if (!schema.contains("allOf")) return flat;
  const SchemaJson& parts = schema["allOf"];
  if (!parts.is_array() || parts.empty()) return error(place.member("allOf"), "expected a list of schemas");
  for (size_t i = 0; i < parts.size(); ++i) {
    OUTRIDER_TRY(const SchemaJson part, flatten(parts[i], place.member("allOf").element(i)));
    OUTRIDER_TRY(flat, merge(flat, part, place.path));
  }
  return flat;
}

Result<GrammarExpr> SchemaCompiler::convert_alternatives(const SchemaJson& schema, const std::string& keyword,
                                                         const Place& place) {
  const SchemaJson& list = schema[keyword];
  const Place list_place = place.member(keyword);
  if (!list.is_array() || list.empty()) return error(list_place, "expected a list of schemas");
  SchemaJson common = schema;
  common.erase(keyword);
  const bool is_alone = !says_more_than(schema, keyword);
  std::vector<GrammarExpr> choices;
  for (size_t i = 0; i < list.size(); ++i) {
    const Place at = list_place.element(i);
    if (is_alone) {
      OUTRIDER_TRY(const GrammarExpr choice, convert(list[i], at));
      choices.push_back(choice);
      continue;
    }
    OUTRIDER_TRY(const SchemaJson alternative, flatten(list[i], at));
    OUTRIDER_TRY(const SchemaJson joined, merge(common, alternative, at.path));
    OUTRIDER_TRY(const GrammarExpr choice, convert(joined, at));
    choices.push_back(choice);
  }
  return builder_.choice(std::move(choices));
}

Result<GrammarExpr> SchemaCompiler::convert_types(const SchemaJson& schema, const Place& place) {
  if (!schema.contains("type")) {
    for (const std::string_view type : kTypes) {
      const bool is_meant = std::ranges::any_of(
          schema.items(), [&](const auto& item) { return restricted_type(item.key()) == type; });
      if (is_meant) return convert_type(schema, std::string(type), place);
    }
    return text_.value();
  }
  const SchemaJson& type = schema["type"];
  if (type.is_string()) return convert_type(schema, type.get<std::string>(), place);
  if (!type.is_array()) return error(place.member("type"), "expected a type or a list of types");
  std::vector<GrammarExpr> choices;
  for (const SchemaJson& one : type) {
    if (!one.is_string()) return error(place.member("type"), "expected a type or a list of types");
    OUTRIDER_TRY(const GrammarExpr choice, convert_type(schema, one.get<std::string>(), place));
    choices.push_back(choice);
  }
  return builder_.choice(std::move(choices));
}

Result<GrammarExpr> SchemaCompiler::convert_type(const SchemaJson& schema, const std::string& type,
                                                 const Place& place) {
  if (type == "object") return convert_object(schema, place);
  if (type == "array") return convert_array(schema, place);
  if (type == "string") return convert_string(schema, place);
  if (type == "integer") return convert_number(schema, true, place);
  if (type == "number") return convert_number(schema, false, place);
  if (type == "boolean") return text_.boolean();
  if (type == "null") return builder_.literal(text_.null_word());
  return error(place.member("type"), "unknown type " + quote(type) +
                                         "; known: object, array, string, integer, number, boolean, null");
}

Result<int32_t> SchemaCompiler::count_at(const SchemaJson& schema, const char* keyword,
                                         const Place& place) const {
  if (!schema.contains(keyword)) return -1;
  const SchemaJson& value = schema[keyword];
  const double number = value.is_number() ? value.get<double>() : -1.0;
  if (!(number >= 0) || number != static_cast<double>(static_cast<int64_t>(std::min(number, 1e15)))) {
    return error(place.member(keyword), "expected a whole number of at least 0");
  }
  if (number > kMaxCount && std::string_view(keyword).starts_with("min"))
    return unsupported(place.member(keyword), "expected at most " + std::to_string(kMaxCount));
  return static_cast<int32_t>(std::min<double>(number, kMaxCount));
}

namespace {

// Compiles a schema by a function of its compiler. `is_unsupported` tells whether an error comes from what no
// automaton can hold.
Result<GrammarExpr> compile_schema(GrammarBuilder& builder, std::string_view schema,
                                   const ArgumentNotation* notation, bool& is_unsupported) {
  if (schema.size() > GrammarLimits::kTextBytes) {
    return input_error("schema: " + std::to_string(schema.size()) + " bytes, at most " +
                       std::to_string(GrammarLimits::kTextBytes));
  }
  if (nesting(schema) > GrammarLimits::kNesting) {
    return input_error("schema: nests deeper than " + std::to_string(GrammarLimits::kNesting));
  }
  try {
    const SchemaJson root = SchemaJson::parse(schema);
    SchemaCompiler compiler(builder, root, notation == nullptr ? ValueNotation() : notation->values);
    Result<GrammarExpr> compiled = notation == nullptr ? compiler.run() : compiler.run_arguments(*notation);
    is_unsupported = !compiled.ok() && compiler.is_unsupported();
    return compiled;
  } catch (const SchemaJson::parse_error& problem) {
    return input_error("schema: not valid JSON at byte " + std::to_string(problem.byte));
  } catch (const SchemaJson::exception& problem) {
    return input_error("schema: " + printable(problem.what()));
  }
}

// Gives a body to the rules that an error left without one.
void define_rest(GrammarBuilder& builder, size_t first_rule) {
  for (size_t rule = first_rule; rule < builder.rules().size(); ++rule) {
    if (builder.rules()[rule].body < 0) builder.define(static_cast<int32_t>(rule), builder.nothing());
  }
}

bool is_productive(const GrammarBuilder& builder, GrammarExpr expression) {
  return analyse_expressions(builder).is_productive[static_cast<size_t>(expression)];
}

}  // namespace

Result<GrammarExpr> json_schema_expression(GrammarBuilder& builder, std::string_view schema) {
  bool is_unsupported = false;
  return compile_schema(builder, schema, nullptr, is_unsupported);
}

Result<ArgumentsExpression> arguments_expression(GrammarBuilder& builder, std::string_view schema) {
  const size_t first_rule = builder.rules().size();
  bool is_unsupported = false;
  const Result<GrammarExpr> compiled = compile_schema(builder, schema, nullptr, is_unsupported);
  if (compiled.ok()) {
    if (is_productive(builder, *compiled)) return ArgumentsExpression{.expression = *compiled, .problem = {}};
    return input_error("schema: no value is valid under it");
  }
  if (!is_unsupported) return compiled.error();
  define_rest(builder, first_rule);
  return ArgumentsExpression{.expression = json_object_expression(builder),
                             .problem = compiled.error().message};
}

std::optional<GrammarExpr> arguments_in_notation(GrammarBuilder& builder, std::string_view schema,
                                                 const ArgumentNotation& notation) {
  const size_t first_rule = builder.rules().size();
  bool is_unsupported = false;
  const Result<GrammarExpr> compiled = compile_schema(builder, schema, &notation, is_unsupported);
  if (!compiled.ok()) define_rest(builder, first_rule);
  if (!compiled.ok() || !is_productive(builder, *compiled)) return std::nullopt;
  return *compiled;
}

Result<SharedGrammar> grammar_of_json_schema(std::string_view schema) {
  GrammarBuilder builder;
  OUTRIDER_TRY(const GrammarExpr root, json_schema_expression(builder, schema));
  auto grammar = builder.build(root);
  if (!grammar.ok()) return input_error("schema: " + grammar.error().message);
  return grammar;
}

}  // namespace outrider
