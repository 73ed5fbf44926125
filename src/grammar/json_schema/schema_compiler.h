// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/grammar_builder.h"
#include "grammar/json_schema/json_text.h"
#include "grammar/json_schema/number_ranges.h"
#include "grammar/json_schema/schema_merge.h"

namespace outrider {

// Compiles one JSON schema to an expression for the JSON texts that are valid under it.
class SchemaCompiler {
 public:
  SchemaCompiler(GrammarBuilder& builder, const SchemaJson& root, ValueNotation notation = {})
      : builder_(builder), root_(root), text_(builder, std::move(notation)) {}

  Result<GrammarExpr> run() { return convert(root_, "$", 0); }
  // The members of an object in the notation, and not as JSON (schema_arguments.cc).
  Result<GrammarExpr> run_arguments(const ArgumentNotation& notation);
  // Whether the error of run() is a keyword or a combination that no automaton here can hold, in a schema
  // that may make sense.
  bool is_unsupported() const { return is_unsupported_; }

 private:
  struct Place {
    std::string path;  // for error messages: "$.properties.age"
    int depth = 0;

    Place member(std::string_view name) const { return {path + "." + std::string(name), depth + 1}; }
    Place element(size_t index) const { return {path + "[" + std::to_string(index) + "]", depth + 1}; }
  };

  static Error error(const Place& place, const std::string& problem);
  Error unsupported(const Place& place, const std::string& problem) const;
  Result<GrammarExpr> convert(const SchemaJson& schema, std::string path, int depth) {
    return convert(schema, Place{std::move(path), depth});
  }
  Result<GrammarExpr> convert(const SchemaJson& schema, const Place& place);
  Result<GrammarExpr> convert_reference(const SchemaJson& reference, const Place& place);
  Result<GrammarExpr> convert_alternatives(const SchemaJson& schema, const std::string& keyword,
                                           const Place& place);
  Result<GrammarExpr> convert_types(const SchemaJson& schema, const Place& place);
  Result<GrammarExpr> convert_type(const SchemaJson& schema, const std::string& type, const Place& place);
  Result<GrammarExpr> convert_values(const SchemaJson& schema, const Place& place);
  // The values of enum and const that are valid under the other keywords. Precondition: the schema has
  // either.
  Result<std::vector<SchemaJson>> valid_values(const SchemaJson& schema, const Place& place);
  // The keywords of a schema that restrict one type, as a grammar.
  struct TypeRest {
    bool restricts = false;
    SharedGrammar grammar;  // null: no text is valid
  };
  Result<TypeRest> rest_of_type(const SchemaJson& schema, std::string_view type, const Place& place);
  Result<GrammarExpr> convert_object(const SchemaJson& schema, const Place& place);
  Result<GrammarExpr> convert_array(const SchemaJson& schema, const Place& place);
  Result<GrammarExpr> convert_string(const SchemaJson& schema, const Place& place);
  Result<GrammarExpr> convert_number(const SchemaJson& schema, bool is_integer, const Place& place);
  Result<NumberBounds> number_bounds(const SchemaJson& schema, const Place& place) const;
  // Lists of distinct values, of which there are `min` to `max` (-1: any number).
  Result<GrammarExpr> convert_unique(const SchemaJson& schema, int32_t min, int32_t max, const Place& place);
  GrammarExpr unique_in_any_order(const std::vector<GrammarExpr>& values, size_t min, size_t max);
  GrammarExpr unique_in_order(const std::vector<GrammarExpr>& values, size_t min, size_t max);
  // Appends the values that a schema lists and that `values` does not have. Error: it does not list them.
  Status list_values(const SchemaJson& schema, const Place& place, std::vector<SchemaJson>& values);

  struct Property {
    std::string name;
    GrammarExpr member = 0;
    bool is_required = false;
  };
  // Makes a member of an object from its name and the schema of its value.
  using MemberMaker = std::function<Result<GrammarExpr>(const std::string& name, const SchemaJson& value,
                                                        const Place& place)>;
  Result<std::vector<Property>> convert_properties(const SchemaJson& schema, const MemberMaker& make_member,
                                                   const Place& place);
  Result<GrammarExpr> convert_member(const std::string& name, const SchemaJson& value, const Place& place);
  // The kinds of values that a schema allows, as bits; 0: it does not say.
  Result<uint8_t> value_kinds(const SchemaJson& schema, const Place& place);
  // A value of an argument. `is_text`: it stands as it is.
  struct Argument {
    GrammarExpr value = 0;
    bool is_text = false;
  };
  Result<Argument> convert_argument(const ArgumentNotation& notation, const SchemaJson& schema,
                                    const Place& place);
  Result<GrammarExpr> convert_text(const ArgumentNotation& notation, const SchemaJson& schema,
                                   const Place& place);
  Result<GrammarExpr> argument_value(const ArgumentNotation& notation, const SchemaJson& schema,
                                     const Place& place);
  Result<GrammarExpr> argument_member(const ArgumentNotation& notation, GrammarExpr name,
                                      const SchemaJson& schema, const Place& place);
  // The schema of members that `properties` does not name; nullopt: they are not allowed.
  Result<std::optional<GrammarExpr>> convert_extra(const SchemaJson& schema,
                                                   const std::vector<Property>& properties,
                                                   const Place& place);
  // The names that propertyNames allows; nullopt: any.
  Result<std::optional<GrammarExpr>> convert_names(const SchemaJson& schema, const Place& place);
  // `end` follows the last member.
  GrammarExpr members_in_order(const std::vector<Property>& properties, std::optional<GrammarExpr> extra,
                               GrammarExpr comma, GrammarExpr end);
  GrammarExpr elements_in_order(const std::vector<GrammarExpr>& prefix, std::optional<GrammarExpr> rest,
                                int32_t min, int32_t max);
  GrammarExpr constant(const SchemaJson& value);
  // The text of a value that is no list and no object; nullopt: the notation has none.
  std::optional<std::string> spelled(const SchemaJson& value) const;

  // The schema with $ref and allOf merged into its other keywords.
  Result<SchemaJson> flatten(const SchemaJson& schema, const Place& place);
  Result<SchemaJson> merge(const SchemaJson& a, const SchemaJson& b, const std::string& path) const;
  Result<const SchemaJson*> resolve(const SchemaJson& reference, const Place& place) const;
  Status check_excess(const Place& place);
  Status check_keywords(const SchemaJson& schema, const Place& place) const;
  // The keyword's value, -1 if the schema does not have it.
  Result<int32_t> count_at(const SchemaJson& schema, const char* keyword, const Place& place) const;

  GrammarBuilder& builder_;
  const SchemaJson& root_;
  JsonText text_;
  std::map<std::string, int32_t> rules_;  // by reference
  size_t converted_ = 0;                  // number of schemas compiled, merged ones included
  mutable bool is_unsupported_ = false;
};

}  // namespace outrider
