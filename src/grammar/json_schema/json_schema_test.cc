// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "base/sanitized.h"
#include "grammar/grammar_builder.h"
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
  expect({R"({"allOf":[{"enum":["a",1,"b"]},{"enum":[1,"b","c"]}]})", {"1", R"("b")"}, {R"("a")", R"("c")"}});
  expect({R"({"allOf":[{"type":"integer","multipleOf":4},{"multipleOf":6}],"minimum":0})",
          {"0", "12", "144"},
          {"4", "6", "10", "-12"}});
  expect({R"({"enum":[1,"a",null,[1,{"k":true}],"b"],"type":["string","array"]})",
          {R"("a")", R"("b")", R"([1, {"k": true}])"},
          {"1", "null", "[1]"}});
}

// A reference is a URI: its fragment is decoded before it is read as a pointer.
TEST(JsonSchema, ReferencesArePercentDecoded) {
  const char* kSchema =
      R"({"$defs":{"Bar<x>":{"const":1},"a/b":{"const":2},"50%":{"const":3},"%3C":{"const":4},"ä":{"const":5},
          "q":{"$anchor":"here","const":6}},"prefixItems":[{"$ref":"#/$defs/Bar%3Cx%3e"},{"$ref":"#/$defs/a~1b"},
          {"$ref":"#/$defs/a%7E1b"},{"$ref":"#/%24defs/50%25"},{"$ref":"#/$defs/%253C"},{"$ref":"#/$defs/%C3%A4"},
          {"$ref":"#here"}]})";
  expect({kSchema, {"[1,2,2,3,4,5,6]"}, {"[1,2,2,3,4,5,5]", "[2]"}});
  for (const char* wrong : {"#/$defs/a%", "#/$defs/a%2", "#/$defs/a%zz", "#nowhere", "#/$defs/b"}) {
    const auto grammar = grammar_of_json_schema(
        R"({"$defs":{"a":{}, "a%":{}, "a%2":{}, "a%zz":{}},"$ref":")" + std::string(wrong) + "\"}");
    ASSERT_FALSE(grammar.ok()) << wrong;
    EXPECT_NE(grammar.error().message.find("there is no"), std::string::npos) << grammar.error().message;
  }
}

TEST(JsonSchema, AnnotationsSayNothing) {
  expect({R"({"type":"object","$vocabulary":{"v":true},"x-order":1,"properties":{"a":{"enum":["x"],"x-y":{}}},
              "required":["a"],"propertyOrdering":["a"],"ui:widget":"w","$anchor":"t"})",
          {R"({"a":"x"})"},
          {"{}", R"({"a":"y"})"}});
  expect({R"({"type":"string","format":"byte","maxLength":2})", {R"("ab")"}, {R"("abc")"}});
  expect({R"({"type":"string","format":"uri","minLength":1,"maxLength":3})", {R"("a")"}, {R"("")"}});
  expect({R"({"type":"string","format":"ipv4network"})", {R"("")", R"("x")"}, {"1"}});
  expect({R"({"enum":["2020-01-01"],"format":"date"})", {R"("2020-01-01")"}, {R"("2020-01-02")"}});
  expect({R"({"$ref":"#/$defs/a","x-note":1,"$defs":{"a":{"type":"null"}}})", {"null"}, {"1"}});
}

TEST(JsonSchema, WordsNearAKeywordAreRefused) {
  for (const char* word : {"minlength", "min_length", "maxLenght", "propertie", "additional_properties",
                           "Type", "anyof", "require"}) {
    const auto grammar = grammar_of_json_schema(R"({"type":"string",")" + std::string(word) + "\":1}");
    ASSERT_FALSE(grammar.ok()) << word;
    EXPECT_NE(grammar.error().message.find("is near"), std::string::npos) << grammar.error().message;
  }
}

TEST(JsonSchema, NullableTypesAllowNull) {
  expect({R"({"type":"integer","nullable":true,"minimum":3})", {"3", "null"}, {"2", "\"x\""}});
  expect({R"({"type":"string","nullable":false})", {"\"x\""}, {"null"}});
  expect({R"({"nullable":true,"const":1})", {"1"}, {"null"}});
  expect({R"({"allOf":[{"type":"string","nullable":true},{"type":["string","null"],"maxLength":1}]})",
          {"null", "\"x\""},
          {"\"xy\"", "1"}});
}

TEST(JsonSchema, MultiplesExactly) {
  struct Range {
    int factor, low, high;
  };
  for (const Range& range : {Range{7, -100, 1300},
                             {3, 5, 5},
                             {12, 13, 23},
                             {10, -25, 1250},
                             {99, 0, 1300},
                             {101, -1300, 1300},
                             {250, 1, 1299},
                             {1, -3, 3},
                             {2, -1300, -1}}) {
    const nlohmann::json schema = {
        {"type", "integer"}, {"minimum", range.low}, {"maximum", range.high}, {"multipleOf", range.factor}};
    const auto grammar = grammar_of_json_schema(schema.dump());
    for (int value = -1300; value <= 1300; ++value) {
      const bool is_valid = range.low <= value && value <= range.high && value % range.factor == 0;
      ASSERT_EQ(grammar.ok() && accepts(*grammar, std::to_string(value)), is_valid) << schema << value;
    }
  }
}

TEST(JsonSchema, MultiplesWithoutBounds) {
  for (const int factor : {2, 3, 60, 100, 700, 97}) {
    const SharedGrammar grammar = must(grammar_of_json_schema(
        nlohmann::json({{"type", "integer"}, {"minimum", 3}, {"multipleOf", factor}}).dump()));
    constexpr int kMost = repetitions(7'000);
    for (int64_t value = -kMost; value <= kMost; value += value % 3 == 0 ? 5 : 1) {
      ASSERT_EQ(accepts(grammar, std::to_string(value)), value >= 3 && value % factor == 0)
          << factor << ' ' << value;
    }
    EXPECT_TRUE(accepts(grammar, std::to_string(factor * int64_t{1'000'003'000'007}))) << factor;
    EXPECT_FALSE(accepts(grammar, std::to_string(factor * int64_t{1'000'003'000'007} + 1))) << factor;
  }
  expect({R"({"type":"number","multipleOf":5})", {"0", "-5", "10"}, {"-0", "5.0", "05", "7", "1e1"}});
  expect({R"({"multipleOf":123457})", {"0", "123457", "-246914"}, {"1", "123458"}});
}

TEST(JsonSchema, ListsOfDistinctValues) {
  expect({R"({"uniqueItems":true,"items":{"$ref":"#/$defs/c"},"$defs":{"c":{"enum":["a","b","c","a"]}}})",
          {"[]", R"(["b"])", R"(["c", "a"])", R"(["b","c","a"])"},
          {R"(["a","a"])", R"(["a","b","a"])", R"(["d"])", R"(["a","b","c","a"])"}});
  expect({R"({"uniqueItems":true,"items":{"type":"boolean"},"minItems":1,"maxItems":1})",
          {"[true]"},
          {"[]", "[true,false]"}});
  expect({R"({"uniqueItems":true,"minItems":2,"maxItems":3,"items":{"enum":[0,1,2,3,4,5,6,7,8,9]}})",
          {"[0,1]", "[3, 5, 9]"},
          {"[]", "[1]", "[0,1,2,3]", "[1,1]", "[0,0,1]"}});
  expect({R"({"uniqueItems":true,"items":{"anyOf":[{"const":[1]},{"const":{"k":2}}]}})",
          {"[[1]]", R"([{"k": 2}, [1]])"},
          {"[[1],[1]]"}});
  expect({R"({"type":"array","uniqueItems":true,"maxItems":1,"items":{"type":"string"}})",
          {R"(["x"])"},
          {R"(["x","y"])"}});
}

TEST(JsonSchema, ConstantsHoldTheOtherKeywords) {
  expect({R"({"enum":["a","bb","ccc",1,9,null,true],"minLength":2,"maximum":5})",
          {"\"bb\"", "\"ccc\"", "1", "null", "true"},
          {"\"a\"", "9"}});
  expect({R"({"const":"ab","pattern":"^a"})", {"\"ab\""}, {"\"ac\""}});
}

TEST(JsonSchema, NamesOfFreeObjects) {
  expect({R"({"type":"object","propertyNames":{"type":"string"},"additionalProperties":{"type":"null"}})",
          {R"({"any":null})"},
          {R"({"any":1})"}});
  expect({R"({"propertyNames":{"pattern":"^[a-z]+$"},"additionalProperties":{"type":"null"}})",
          {"{}", R"({"ab":null,"c":null})"},
          {R"({"A":null})", R"({"":null})"}});
}

TEST(JsonSchema, ContradictionsAreErrors) {
  for (const char* schema :
       {R"({"type":"integer","minimum":3,"maximum":2})",
        R"({"type":"integer","multipleOf":7,"minimum":1,"maximum":6})", R"({"const":1,"type":"string"})",
        R"({"enum":["a"],"minLength":2})", R"({"allOf":[{"const":1},{"const":2}]})",
        R"({"type":"string","minLength":3,"maxLength":2,"pattern":"a"})", R"({"type":[]})",
        R"({"type":"object","properties":{"a":false},"required":["a"]})",
        R"({"type":"object","properties":{"a":{},"b":{}},"required":["a","b"],"maxProperties":1})",
        R"({"type":"object","properties":{"a":{}},"additionalProperties":false,"minProperties":2})",
        R"({"uniqueItems":true,"minItems":3,"items":{"enum":[1,2]}})",
        R"({"type":"array","minItems":1,"items":false})",
        R"({"allOf":[{"type":"string"},{"type":"null"}]})"}) {
    const auto grammar = grammar_of_json_schema(schema);
    ASSERT_FALSE(grammar.ok()) << schema;
    GrammarBuilder builder;
    const auto arguments = arguments_expression(builder, schema);
    ASSERT_FALSE(arguments.ok()) << schema;
    EXPECT_NE(arguments.error().message.find("no value is valid"), std::string::npos) << schema;
  }
}

// A tool whose schema no automaton can hold is served with any object as its arguments.
TEST(JsonSchema, ArgumentsMayGoWithoutAGuarantee) {
  for (
      const char* schema :
      {R"({"not":{}})",
       R"({"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"items":{"if":{}}}}})",
       R"({"type":"object","properties":{"s":{"type":"array","uniqueItems":true,"items":{"type":"string"}}}})",
       R"({"type":"object","properties":{"s":{"type":"number","multipleOf":0.01}}})",
       R"x({"type":"object","properties":{"s":{"pattern":"(?=a)"}}})x",
       R"({"$ref":"https://example.org/schema"})"}) {
    GrammarBuilder builder;
    const auto arguments = arguments_expression(builder, schema);
    ASSERT_TRUE(arguments.ok()) << schema << arguments.error().message;
    EXPECT_NE(arguments->problem, "") << schema;
    const SharedGrammar grammar = must(builder.build(arguments->expression));
    EXPECT_TRUE(accepts(grammar, R"({"anything": [1]})")) << schema;
    EXPECT_FALSE(accepts(grammar, "1")) << schema;
  }
  for (const char* schema :
       {R"({"type":"text"})", R"({"$ref":"#/$defs/none"})", R"({"minLenght":1})", "[]", "{"}) {
    GrammarBuilder builder;
    EXPECT_FALSE(arguments_expression(builder, schema).ok()) << schema;
  }
}

// An argument with a schema that says nothing may be any text up to the mark after it.
TEST(JsonSchema, ArgumentsWithoutATypeAreTexts) {
  GrammarBuilder builder;
  const auto arguments =
      arguments_in_notation(builder, R"({"type":"object","required":["a"],"additionalProperties":false,
                                         "properties":{"a":{"description":"anything"}}})",
                            {.before_name = builder.literal("<"),
                             .before_text = builder.literal(">"),
                             .before_value = builder.literal(">"),
                             .after_value = builder.literal("</p>"),
                             .separator = builder.empty(),
                             .text_end = "</p>"});
  ASSERT_TRUE(arguments.has_value());
  const SharedGrammar grammar = must(builder.build(*arguments));
  for (const char* text : {"", "x", "1", "two\nlines", "<p>", "</q>", "{\"b\": [1]}", "<</p"})
    EXPECT_TRUE(accepts(grammar, "<a>" + std::string(text) + "</p>")) << text;
  EXPECT_FALSE(accepts(grammar, "<a>x</p></p>"));
  EXPECT_FALSE(accepts(grammar, "<a>x"));
  EXPECT_FALSE(accepts(grammar, "<b>x</p>"));
}

// Texts in a notation without escapes end at its mark.
TEST(JsonSchema, TextsWithoutEscapesEndAtTheirMark) {
  GrammarBuilder builder;
  const auto arguments =
      arguments_in_notation(builder, R"({"type":"object","required":["a"],"additionalProperties":false,
                                         "properties":{"a":{"type":"string"}}})",
                            {.values = {.quote = "<|>", .quote_bytes = "<|>"},
                             .before_name = builder.empty(),
                             .before_text = builder.empty(),
                             .before_value = builder.literal(":"),
                             .after_value = builder.empty(),
                             .separator = builder.literal(",")});
  ASSERT_TRUE(arguments.has_value());
  const SharedGrammar grammar = must(builder.build(*arguments));
  for (const char* text : {"", "x", "\"", "\\", "two\nlines", "<|", "<<|", "é"})
    EXPECT_TRUE(accepts(grammar, "a:<|>" + std::string(text) + "<|>")) << text;
  EXPECT_FALSE(accepts(grammar, "a:<|>x<|>y<|>"));
  EXPECT_FALSE(accepts(grammar, "a:<|>x<|"));
  EXPECT_FALSE(accepts(grammar, "a:x"));
}

}  // namespace
}  // namespace outrider
