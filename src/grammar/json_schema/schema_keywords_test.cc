// SPDX-License-Identifier: Apache-2.0
// The keywords of JSON Schema's test suite, each with what is held of it, and the table in the documents.
#include "grammar/json_schema/schema_keywords.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "grammar/test_grammars.h"

namespace outrider {
namespace {

struct Sample {
  std::string_view keyword;
  std::string schema;  // with the keyword
  std::string valid;
  std::string invalid;  // empty: the keyword is an annotation here
};

// One schema for each keyword that is held.
const std::vector<Sample>& held() {
  static const std::vector<Sample> kSamples = {
      {"type", R"({"type":"null"})", "null", "1"},
      {"enum", R"({"enum":[1,2]})", "2", "3"},
      {"const", R"({"const":1})", "1", "2"},
      {"anyOf", R"({"anyOf":[{"const":1},{"const":2}]})", "2", "3"},
      {"oneOf", R"({"oneOf":[{"const":1},{"const":2}]})", "2", "3"},
      {"allOf", R"({"allOf":[{"minimum":1},{"maximum":2}]})", "2", "3"},
      {"$ref", R"({"$ref":"#/$defs/a","$defs":{"a":{"const":1}}})", "1", "2"},
      {"nullable", R"({"type":"integer","nullable":true})", "null", "true"},
      {"properties", R"({"properties":{"a":{"const":1}}})", R"({"a":1})", R"({"a":2})"},
      {"required", R"({"required":["a"]})", R"({"a":1})", "{}"},
      {"additionalProperties", R"({"additionalProperties":{"const":1}})", R"({"a":1})", R"({"a":2})"},
      {"propertyNames", R"({"propertyNames":{"pattern":"^a$"}})", R"({"a":1})", R"({"b":1})"},
      {"minProperties", R"({"minProperties":1})", R"({"a":1})", "{}"},
      {"maxProperties", R"({"maxProperties":0})", "{}", R"({"a":1})"},
      {"items", R"({"items":{"const":1}})", "[1]", "[2]"},
      {"prefixItems", R"({"prefixItems":[{"const":1}]})", "[1]", "[2]"},
      {"additionalItems", R"({"items":[{}],"additionalItems":{"const":1}})", "[2,1]", "[2,2]"},
      {"minItems", R"({"minItems":1})", "[1]", "[]"},
      {"maxItems", R"({"maxItems":1})", "[1]", "[1,1]"},
      {"uniqueItems", R"({"uniqueItems":true,"items":{"enum":[1,2]}})", "[2,1]", "[1,1]"},
      {"minLength", R"({"minLength":1})", "\"a\"", "\"\""},
      {"maxLength", R"({"maxLength":1})", "\"a\"", "\"aa\""},
      {"pattern", R"({"pattern":"^a+$"})", "\"aa\"", "\"b\""},
      {"format", R"({"format":"date"})", "\"2024-02-29\"", "\"2023-02-29\""},
      {"minimum", R"({"minimum":1})", "1", "0"},
      {"maximum", R"({"maximum":1})", "1", "2"},
      {"exclusiveMinimum", R"({"exclusiveMinimum":1})", "2", "1"},
      {"exclusiveMaximum", R"({"exclusiveMaximum":1})", "0", "1"},
      {"multipleOf", R"({"multipleOf":3})", "6", "7"},
  };
  return kSamples;
}

constexpr std::string_view kRefused[] = {"not",
                                         "if",
                                         "then",
                                         "else",
                                         "patternProperties",
                                         "dependencies",
                                         "dependentRequired",
                                         "dependentSchemas",
                                         "unevaluatedProperties",
                                         "contains",
                                         "minContains",
                                         "maxContains",
                                         "unevaluatedItems",
                                         "$dynamicRef",
                                         "$recursiveRef"};

// The other keywords of the suite (drafts 7 to 2020-12), and words of generators.
constexpr std::string_view kAnnotations[] = {"$anchor",
                                             "$comment",
                                             "$defs",
                                             "$dynamicAnchor",
                                             "$id",
                                             "$recursiveAnchor",
                                             "$schema",
                                             "$vocabulary",
                                             "contentEncoding",
                                             "contentSchema",
                                             "default",
                                             "contentMediaType",
                                             "definitions",
                                             "deprecated",
                                             "description",
                                             "examples",
                                             "readOnly",
                                             "title",
                                             "writeOnly",
                                             "discriminator",
                                             "example",
                                             "externalDocs",
                                             "xml",
                                             "strict",
                                             "x-order",
                                             "x-enum-varnames",
                                             "enumNames",
                                             "errorMessage",
                                             "ui:widget",
                                             "propertyOrdering",
                                             "tsType",
                                             "options",
                                             "meta",
                                             "markdownDescription"};

TEST(SchemaKeywords, HeldOnesAreHeld) {
  for (const Sample& sample : held()) {
    EXPECT_EQ(keyword_role(sample.keyword), KeywordRole::kHeld) << sample.keyword;
    EXPECT_NE(sample.schema.find("\"" + std::string(sample.keyword) + "\""), std::string::npos);
    const SharedGrammar grammar = must(grammar_of_json_schema(sample.schema));
    EXPECT_TRUE(accepts(grammar, sample.valid)) << sample.keyword;
    EXPECT_FALSE(accepts(grammar, sample.invalid)) << sample.keyword;
  }
}

TEST(SchemaKeywords, RefusedOnesAreRefusedByName) {
  for (const std::string_view keyword : kRefused) {
    EXPECT_EQ(keyword_role(keyword), KeywordRole::kRefused) << keyword;
    const auto grammar = grammar_of_json_schema("{\"" + std::string(keyword) + "\":{}}");
    ASSERT_FALSE(grammar.ok()) << keyword;
    EXPECT_NE(grammar.error().message.find("$." + std::string(keyword) + ": this keyword is not supported"),
              std::string::npos)
        << grammar.error().message;
  }
}

TEST(SchemaKeywords, AnnotationsSayNothing) {
  for (const std::string_view keyword : kAnnotations) {
    EXPECT_EQ(keyword_role(keyword), KeywordRole::kAnnotation) << keyword;
    const SharedGrammar grammar =
        must(grammar_of_json_schema("{\"type\":\"null\",\"" + std::string(keyword) + "\":{}}"));
    EXPECT_TRUE(accepts(grammar, "null")) << keyword;
    EXPECT_FALSE(accepts(grammar, "1")) << keyword;
  }
}

TEST(SchemaKeywords, TheTableOfTheDocumentsIsThisOne) {
  std::ifstream file(OUTRIDER_SOURCE_DIR "/docs/reference/structured_output.md");
  std::ostringstream text;
  text << file.rdbuf();
  std::string held_row = "|", refused_row = "|";
  for (const Sample& sample : held()) held_row += " `" + std::string(sample.keyword) + "`";
  for (const std::string_view keyword : kRefused) refused_row += " `" + std::string(keyword) + "`";
  EXPECT_NE(text.str().find(held_row + " | held |\n" + refused_row + " | refused |\n"), std::string::npos)
      << held_row << " | held |\n"
      << refused_row << " | refused |";
}

}  // namespace
}  // namespace outrider
