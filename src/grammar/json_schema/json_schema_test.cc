// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "grammar/test_grammars.h"

namespace outrider {
namespace {

struct Case {
  const char* schema;
  std::vector<const char*> valid;
  std::vector<const char*> invalid;
};

void expect(const Case& test) {
  const SharedGrammar grammar = must(grammar_of_json_schema(test.schema));
  for (const char* text : test.valid) EXPECT_TRUE(accepts(grammar, text)) << test.schema << ": " << text;
  for (const char* text : test.invalid) EXPECT_FALSE(accepts(grammar, text)) << test.schema << ": " << text;
}

TEST(JsonSchema, IntegersOfARangeExactly) {
  for (const auto& [low, high] : std::vector<std::pair<int, int>>{
           {0, 0}, {-1, 1}, {7, 7}, {-13, -9}, {-120, 15}, {98, 1203}, {1, 10}, {999, 1000}, {-1000, -999}}) {
    for (const bool is_exclusive : {false, true}) {
      const int edge = is_exclusive ? 1 : 0;
      const nlohmann::json schema = {{"type", "integer"},
                                     {is_exclusive ? "exclusiveMinimum" : "minimum", low - edge},
                                     {is_exclusive ? "exclusiveMaximum" : "maximum", high + edge}};
      const SharedGrammar grammar = must(grammar_of_json_schema(schema.dump()));
      for (int value = -1300; value <= 1300; ++value) {
        ASSERT_EQ(accepts(grammar, std::to_string(value)), low <= value && value <= high) << schema << value;
      }
    }
  }
}

TEST(JsonSchema, NumbersOfARange) {
  expect({R"({"type":"number","minimum":-0.25,"exclusiveMaximum":1.5})",
          {"-0.25", "-0.2499", "0", "-0", "1", "1.4999", "0.0", "1.0", "-0.250"},
          {"-0.26", "-0.2501", "1.5", "1.50", "2", "-1", "1.51", "01", "1.", "1e0"}});
  expect({R"({"type":"number","exclusiveMinimum":2.25,"maximum":2.27})",
          {"2.26", "2.2500001", "2.27", "2.270"},
          {"2.25", "2.250", "2.271", "2", "2.2", "2.3"}});
  expect({R"({"type":"number","minimum":1e2})", {"100", "100.0", "5000"}, {"99.9", "-100"}});
}

TEST(JsonSchema, Objects) {
  expect(
      {R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"required":["b"]})",
       {R"({"b":null})", R"({"a": null, "b": null, "c": null})", R"({"b":null,"c":null})"},
       {"{}", R"({"a":null})", R"({"b":null,"a":null})", R"({"b":null,"x":null})"}});
  expect({R"({"properties":{"ab":{},"a\"":{}},"additionalProperties":{"type":"integer"}})",
          {"{}", R"({"ab":"x","other":1})", R"({"a":1,"abc":2,"":3})", R"({"a\"":[],"b":1})"},
          {R"({"other":"x"})", R"({"x":1,"ab":1})", R"({"x":1,"a\"":1})"}});
  expect(
      {R"({"type":"object","additionalProperties":{"type":"boolean"},"minProperties":1,"maxProperties":2})",
       {R"({"a":true})", R"({"a":true,"b":false})"},
       {"{}", R"({"a":true,"b":true,"c":true})"}});
}

TEST(JsonSchema, Arrays) {
  expect(
      {R"({"type":"array","prefixItems":[{"type":"string"},{"type":"null"}],"items":{"type":"integer"},"minItems":1,"maxItems":3})",
       {R"(["x"])", R"(["x", null])", R"(["x",null,1])"},
       {"[]", R"(["x",1])", R"(["x",null,1,2])"}});
  expect({R"({"items":[{"type":"null"}],"additionalItems":false})", {"[]", "[null]"}, {"[null,null]"}});
}

TEST(JsonSchema, StringsInCharactersNotBytes) {
  expect({R"({"type":"string","minLength":2,"maxLength":3})",
          {R"("ab")", R"("é漢😀")", R"("\n\"\\")", R"("\ud83d\ude00a")"},
          {R"("a")", R"("abcd")", R"("é")", R"("\ud83d\ude00")", R"("\ud83da")"}});
  expect({R"({"type":"string","pattern":"^a.\"$|b"})",
          {R"("a\"\"")", R"("ax\"")", R"("xby")", R"("b\\")"},
          {R"("a\"")", R"("a\n\"")", R"("x")"}});
}

TEST(JsonSchema, Formats) {
  const std::vector<Case> cases = {
      {"date",
       {"2024-02-29", "1999-12-31", "2000-02-29"},
       {"2023-02-29", "1900-02-29", "2024-13-01", "0000-01-01"}},
      {"date-time",
       {"2024-02-29T23:59:59Z", "2024-01-01T00:00:00.5+02:00"},
       {"2024-01-01", "2024-01-01T24:00:00Z"}},
      {"uuid", {"123e4567-e89b-12d3-a456-426614174000"}, {"123e4567"}},
      {"ipv4", {"0.0.0.0", "255.1.20.9"}, {"256.1.1.1", "1.2.3", "01.2.3.4"}},
      {"ipv6", {"::", "::1", "1::", "1:2:3:4:5:6:7:8", "fe80::1:2"}, {"1:2", "1::2::3", "1:2:3:4:5:6:7:8:9"}},
      {"email", {"a.b+c@example.org"}, {"a@b", "@b.c", "a b@c.d"}},
      {"duration", {"P1D", "PT3H", "P1Y2M3DT4H5M6S", "P2W"}, {"P", "PT", "1D"}}};
  for (const Case& format : cases) {
    const SharedGrammar grammar =
        must(grammar_of_json_schema(std::string(R"({"type":"string","format":")") + format.schema + "\"}"));
    for (const char* text : format.valid)
      EXPECT_TRUE(accepts(grammar, "\"" + std::string(text) + "\"")) << text;
    for (const char* text : format.invalid)
      EXPECT_FALSE(accepts(grammar, "\"" + std::string(text) + "\"")) << text;
  }
}

TEST(JsonSchema, ReferencesAndParts) {
  expect(
      {R"({"$defs":{"tree":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},
              "required":["kids"]}},"$ref":"#/$defs/tree"})",
       {R"({"kids":[]})", R"({"kids":[{"kids":[]},{"kids":[{"kids":[]}]}]})"},
       {"{}", R"({"kids":[1]})"}});
  expect(
      {R"({"allOf":[{"properties":{"a":{"minimum":3}},"required":["a"]},{"properties":{"a":{"type":"integer","maximum":4}}}],
              "anyOf":[{"properties":{"b":{"const":1}},"required":["b"]},{"properties":{"c":{"enum":["x","y"]}}}]})",
       {R"({"a":3,"b":1})", R"({"a":4})", R"({"a":4,"c":"y"})"},
       {R"({"a":5})", R"({"a":3,"b":1,"c":"x"})", R"({"b":1})"}});
  expect({R"({"enum":[1,"a",null,[1,{"k":true}],"b"],"type":["string","array"]})",
          {R"("a")", R"("b")", R"([1, {"k": true}])"},
          {"1", "null", "[1]"}});
}

}  // namespace
}  // namespace outrider
