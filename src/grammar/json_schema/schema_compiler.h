// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar_builder.h"
#include "grammar/json_schema/json_text.h"
#include "grammar/json_schema/number_ranges.h"
#include "grammar/json_schema/schema_merge.h"

namespace outrider {

// Compiles one JSON schema to an expression for the JSON texts that are valid under it.
class SchemaCompiler {
 public:
  SchemaCompiler(GrammarBuilder& builder, const SchemaJson& root)
      : builder_(builder), root_(root), text_(builder) {}

  Result<GrammarExpr> run() { return convert(root_, "$", 0); }

 private:
  struct Place {
    std::string path;  // for error messages: "$.properties.age"
    int depth = 0;

    Place member(std::string_view name) const { return {path + "." + std::string(name), depth + 1}; }
    Place element(size_t index) const { return {path + "[" + std::to_string(index) + "]", depth + 1}; }
  };

  static Error error(const Place& place, const std::string& problem);
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
  Result<GrammarExpr> convert_object(const SchemaJson& schema, const Place& place);
  Result<GrammarExpr> convert_array(const SchemaJson& schema, const Place& place);
  Result<GrammarExpr> convert_string(const SchemaJson& schema, const Place& place);
  Result<GrammarExpr> convert_number(const SchemaJson& schema, bool is_integer, const Place& place);

  struct Property {
    std::string name;
    GrammarExpr member = 0;
    bool is_required = false;
  };
  Result<std::vector<Property>> convert_properties(const SchemaJson& schema, const Place& place);
  // The schema of members that `properties` does not name; nullopt: they are not allowed.
  Result<std::optional<GrammarExpr>> convert_extra(const SchemaJson& schema,
                                                   const std::vector<Property>& properties,
                                                   const Place& place);
  GrammarExpr members_in_order(const std::vector<Property>& properties, std::optional<GrammarExpr> extra);
  GrammarExpr elements_in_order(const std::vector<GrammarExpr>& prefix, std::optional<GrammarExpr> rest,
                                int32_t min, int32_t max);
  GrammarExpr constant(const SchemaJson& value);

  // The schema with $ref and allOf merged into its other keywords.
  Result<SchemaJson> flatten(const SchemaJson& schema, const Place& place);
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
};

}  // namespace outrider
