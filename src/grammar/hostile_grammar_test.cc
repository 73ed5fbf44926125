// SPDX-License-Identifier: Apache-2.0
// Malicious and malformed grammars: each must be refused in time, with an error that names its fault.
#include <chrono>
#include <ctime>

#include "grammar/grammar_builder.h"
#include "grammar/test_grammars.h"

namespace outrider {
namespace {

struct Hostile {
  char kind;  // g: GBNF, r: regex, s: schema
  std::string text;
  std::string error;  // a part of the expected message
};

std::string times(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

// Definitions 0 to count - 1, each a reference to the next one; definition `count` is `last`.
std::string chain(int count, const std::string& last) {
  std::string definitions;
  for (int i = 0; i < count; ++i) {
    definitions += "\"d" + std::to_string(i) + "\":{\"$ref\":\"#/$defs/d" + std::to_string(i + 1) + "\"},";
  }
  return "{\"$defs\":{" + definitions + "\"d" + std::to_string(count) + "\":" + last +
         R"(},"$ref":"#/$defs/d0"})";
}

std::vector<Hostile> malformed_gbnf() {
  return {
      {'g', "", "no rule \"root\""},
      {'g', "# nothing", "no rule \"root\""},
      {'g', "start ::= \"a\"", "no rule \"root\""},
      {'g', "root", "line 1, column 5: expected ::="},
      {'g', "root = \"a\"", "expected ::="},
      {'g', "root ::= \"a", "expected \" at the end of a literal"},
      {'g', "root ::= \"a\nb\"", "expected \" at the end of a literal"},
      {'g', "root ::= [a-", "expected ] at the end of a class"},
      {'g', "root ::= [a\n]", "expected ] at the end of a class"},
      {'g', "root ::= []", "without characters"},
      {'g', "root ::= [z-a]", "backwards"},
      {'g', "root ::= (\"a\"", "expected \")\""},
      {'g', "root ::= \"a\")", "expected the end of the rule"},
      {'g', "root ::= \"\\q\"", "unknown escape"},
      {'g', "root ::= \"\\x4\"", "2 hexadecimal digits"},
      {'g', "root ::= \"\\ud800\"", "not a Unicode character"},
      {'g', "root ::= \"\\U00110000\"", "not a Unicode character"},
      {'g', "root ::= \"\xFF\"", "not valid UTF-8"},
      {'g', "root ::= \"\xC3", "not valid UTF-8"},
      {'g', std::string("root ::= \0", 10), "expected the end of the rule"},
      {'g', "root ::= other", "rule 'other' is not defined"},
      {'g', "root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: rule 'root' is defined twice"},
  };
}

// Ten rules, each of which starts with 3000 copies of the rule before it.
std::string rules_with_many_beginnings() {
  std::string rules = "r0 ::= \"abcdefgh\"*\n";
  for (int i = 1; i < 10; ++i) {
    const std::string name = "(r" + std::to_string(i - 1) + " \"x\"?)";
    rules += "r" + std::to_string(i) + " ::= " + times(name, 3000) + "\n";
  }
  return "root ::= r9\n" + rules;
}

std::vector<Hostile> excessive_gbnf() {
  return {
      {'g', "root ::= \"a\"{1000000000}", "at most 4096"},
      {'g', "root ::= \"a\"{99999999999999999999999}", "at most 4096"},
      {'g', "root ::= \"a\"{0,4097}", "at most 4096"},
      {'g', "root ::= \"a\"{5,2}", "m <= n"},
      {'g', "root ::= \"a\"{-1}", "expected a number"},
      {'g', "root ::= \"a\"{1", "\"}\""},
      {'g', "root ::= \"a\"{1,2", "\"}\""},
      {'g', "root ::= \"a\"" + times("*", 60000), "too many repetitions"},
      {'g', "root ::= " + times("(", 60000) + "\"a\"" + times(")", 60000), "deeper than 200"},
      {'g', "root ::= " + times("(\"a\"|", 50000), "deeper than 200"},
      {'g', times("(", 60000), "expected the name"},
      {'g', "root ::= root", "no finite text"},
      {'g', "root ::= root | \"a\"", "left recursion"},
      {'g', "root ::= \"\" root \"a\" | \"b\"", "left recursion"},
      {'g', "root ::= a\na ::= b \"x\" | \"y\"\nb ::= c?  a\nc ::= \"c\"", "left recursion"},
      {'g', "root ::= (root \"a\")* \"b\"", "left recursion"},
      {'g', "root ::= \"a\" root", "no finite text"},
      {'g', "root ::= (\"a\"?){3000}", "may be empty"},
      {'g', "root ::= " + times("(", 100) + "\"a\"?" + times("){60}", 100), "too large"},
      {'g', rules_with_many_beginnings(), "too many ways to begin"},
      {'g', "root ::= " + times("[^a\\U00010400-\\U0010ff01] ", 9500), "no error"},
      {'g', "root ::= \"a\" <[12]>", "tokens by number"},
      {'g', std::string((256 << 10) + 1, ' '), "bytes, at most 262144"},
  };
}

std::vector<Hostile> hostile_regexes() {
  return {
      {'r', "(", "expected \")\""},
      {'r', ")", "position 0: \")\" without"},
      {'r', "a)b", "\")\" without"},
      {'r', "[", "expected ]"},
      {'r', "[]", "without characters"},
      {'r', "[^]", "without characters"},
      {'r', "[^\\x00-\\u{10FFFF}]", "no character fits"},
      {'r', "[b-a]", "backwards"},
      {'r', "[\\d-z]", "from character to character"},
      {'r', "*a", "nothing to repeat"},
      {'r', "a**", "a quantifier after a quantifier"},
      {'r', "a*+", "possessive"},
      {'r', "a{1000000000}", "at most 4096"},
      {'r', "a{3,1}", "m <= n"},
      {'r', "a{,3}", "expected {m}"},
      {'r', "a{1", "expected {m}"},
      {'r', "(?=a)", "look-around"},
      {'r', "(?<!a)b", "look-around"},
      {'r', "(?i)a", "supported groups"},
      {'r', "(?P<n a)", "name of a group"},
      {'r', "(a)\\1", "back-references"},
      {'r', "\\bword", "word boundaries"},
      {'r', "\\p{L}", "unknown escape"},
      {'r', "\\u12", "hexadecimal"},
      {'r', "\\u{110000}", "not a Unicode character"},
      {'r', "\\uD800", "not a Unicode character"},
      {'r', "a\\", "backslash at the end"},
      {'r', "a^b", "^ and $"},
      {'r', "(a$)b", "^ and $"},
      {'r', "\xC3(", "not valid UTF-8"},
      {'r', times("(", 60000), "deeper than 200"},
      {'r', times("(a|", 60000), "deeper than 200"},
      {'r', times("(", 150) + "a?" + times("){64}", 150), "too large"},
      {'r', times("[^a]", 65000), "too large"},
  };
}

std::vector<Hostile> hostile_schemas() {
  return {
      {'s', "", "not valid JSON at byte"},
      {'s', "{", "not valid JSON at byte"},
      {'s', "[]", "$: expected a schema"},
      {'s', "3", "$: expected a schema"},
      {'s', "false", "no finite text"},
      {'s', "{\"type\":\"\xFF\"}", "not valid JSON at byte"},
      {'s', times("[", 60000), "nests deeper"},
      {'s', times("{\"items\":", 60000) + "{}" + times("}", 60000), "bytes, at most"},
      {'s', times("{\"items\":", 201) + "{}" + times("}", 201), "nests deeper"},
      {'s', R"({"type":"thing"})", "$.type: unknown type"},
      {'s', R"({"type":3})", "$.type: expected a type"},
      {'s', R"({"properties":{"a":{"not":{}}}})", "$.properties.a.not: this keyword is not supported"},
      {'s', R"({"if":{},"then":{}})", "$.if: this keyword"},
      {'s', R"({"patternProperties":{"a":{}}})", "this keyword"},
      {'s', R"({"type":"array","uniqueItems":true})", "$.uniqueItems: needs items that are listed"},
      {'s', R"({"type":"array","contains":{}})", "this keyword"},
      {'s', R"({"$ref":"#"})", "leads back to itself"},
      {'s', R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"})",
       "leads back to itself"},
      {'s', R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})", "left recursion"},
      {'s', R"({"allOf":[{"$ref":"#"},{"type":"null"}]})", "deeper than 200"},
      {'s', R"({"properties":{"a":{"$ref":"#"}},"required":["a"]})", "no finite text"},
      {'s', R"({"$ref":"#/$defs/none"})", "there is no '#/$defs/none'"},
      {'s', R"({"$ref":"other.json#/a"})", "only references into this schema"},
      {'s', R"({"$ref":"urn:uuid:1"})", "only references into this schema"},
      {'s', R"({"$ref":7})", "$.$ref: expected a string"},
      {'s', R"({"$ref":"#/a~2"})", "there is no"},
      {'s', R"({"properties":[]})", "$.properties: expected an object"},
      {'s', R"({"required":"a"})", "$.required: expected a list of names"},
      {'s', R"({"required":[1]})", "$.required: expected a list of names"},
      {'s', R"({"enum":3})", "$.enum: expected a list"},
      {'s', R"({"enum":[]})", "no finite text"},
      {'s', R"({"enum":["a"],"minLength":3})", "no finite text"},
      {'s', R"({"enum":[[1]],"minItems":1})", "cannot be combined"},
  };
}

std::vector<Hostile> more_hostile_schemas() {
  return {
      {'s', R"({"anyOf":[]})", "$.anyOf: expected a list"},
      {'s', R"({"anyOf":{}})", "$.anyOf: expected a list"},
      {'s', R"({"allOf":3})", "$.allOf: expected a list"},
      {'s', R"({"minLength":-1})", "$.minLength: expected a whole number"},
      {'s', R"({"minLength":1.5})", "$.minLength: expected a whole number"},
      {'s', R"({"maxLength":1e300})", "$.maxLength: expected"},
      {'s', R"({"maxItems":1000000000,"type":"array"})", "no error"},
      {'s', R"({"minItems":1000000000,"type":"array"})", "at most 1000000"},
      {'s', R"({"type":"string","minLength":5,"maxLength":4})", "no finite text"},
      {'s', R"({"type":"string","pattern":"(a"})", "$.pattern: regex position 2"},
      {'s', R"({"type":"string","pattern":"a{1000000000}"})", "at most 4096"},
      {'s', R"({"type":"string","pattern":"a","maxLength":4})", "cannot be combined"},
      {'s', R"({"type":"string","format":7})", "$.format: expected a string"},
      {'s', R"({"type":"integer","minimum":"3"})", "$.minimum: expected a number"},
      {'s', R"({"type":"integer","minimum":1e300})", "$.minimum: expected a number"},
      {'s', R"({"type":"integer","maximum":1e300})", "no error"},
      {'s', R"({"type":"integer","minimum":4,"maximum":3})", "no finite text"},
      {'s', R"({"type":"number","exclusiveMinimum":1,"exclusiveMaximum":1})", "no finite text"},
      {'s', R"({"type":"number","multipleOf":0.5})", "$.multipleOf: only whole numbers"},
      {'s', R"({"type":"number","multipleOf":0})", "$.multipleOf: expected a number above 0"},
      {'s', R"({"maxlength":7})", "'maxLength' is near"},
      {'s', R"({"type":"array","minItems":3,"maxItems":2})", "no finite text"},
      {'s', R"({"type":"array","prefixItems":{}})", "$.prefixItems: expected a list"},
      {'s', R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})", "disagree on 'pattern'"},
      {'s', R"({"additionalProperties":3,"type":"object"})", "$.additionalProperties: expected a schema"},
      {'s', R"({"properties":{"a":{}},"minProperties":1})", "$.minProperties"},
      {'s', "{\"enum\":[" + times("\"" + std::string(60, 'x') + "\",", 4000) + "1]}", "no error"},
      {'s', chain(3000, "{\"type\":\"null\"}"), "no error"},
      {'s',
       R"({"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"allOf":[{"$ref":"#/$defs/a"},)"
       R"({"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a"})",
       "deeper than 200"},
  };
}

// As the functions that make one, but however slow a busy machine or a sanitizer is.
Result<SharedGrammar> grammar_in_a_minute(const Hostile& hostile) {
  GrammarBuilder builder(60);
  OUTRIDER_TRY(const GrammarExpr root, hostile.kind == 'g'   ? gbnf_expression(builder, hostile.text)
                                       : hostile.kind == 'r' ? regex_expression(builder, hostile.text)
                                                             : json_schema_expression(builder, hostile.text));
  return builder.build(root);
}

TEST(HostileGrammars, AreRefusedByName) {
  std::vector<Hostile> all = malformed_gbnf();
  for (Hostile& one : excessive_gbnf()) all.push_back(std::move(one));
  for (Hostile& one : hostile_regexes()) all.push_back(std::move(one));
  for (Hostile& one : hostile_schemas()) all.push_back(std::move(one));
  for (Hostile& one : more_hostile_schemas()) all.push_back(std::move(one));
  EXPECT_GE(all.size(), 120U);
  for (const Hostile& hostile : all) {
    const std::clock_t begin = std::clock();  // of this process, not of others
    const auto grammar = grammar_in_a_minute(hostile);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    const std::string message = grammar.ok() ? "no error" : grammar.error().message;
    EXPECT_NE(message.find(hostile.error), std::string::npos)
        << hostile.kind << " " << hostile.text.substr(0, 100) << "\n  expected " << hostile.error
        << "\n  found " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), 400U);
    EXPECT_LT(seconds, 5.0) << hostile.text.substr(0, 100);
  }
}

// A schema that merges a large schema with itself thousands of times. Without a limit, compiling it would
// take minutes.
std::string slow_schema() {
  std::string properties;
  for (int i = 0; i < 2500; ++i) properties += "\"p" + std::to_string(i) + "\":{\"type\":\"string\"},";
  return R"({"$defs":{"a":{"type":"object","properties":{)" + properties +
         R"("q":{}}}},"allOf":[{"$ref":"#/$defs/a"})" + times(R"(,{"$ref":"#/$defs/a"})", 6000) + "]}";
}

TEST(HostileGrammars, PreparationEndsWhenItsTimeIsOver) {
  const auto begin = std::chrono::steady_clock::now();
  const auto grammar = grammar_of_json_schema(slow_schema());
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  ASSERT_FALSE(grammar.ok());
  EXPECT_NE(grammar.error().message.find("the schema takes more than 2 s to prepare; make it simpler"),
            std::string::npos)
      << grammar.error().message;
  EXPECT_GE(time.count(), GrammarLimits::kSeconds);
  EXPECT_LT(time.count(), 2 * GrammarLimits::kSeconds);
}

TEST(HostileGrammars, EveryStageChecksTheTimeLimit) {
  constexpr double kNoTime = -1;
  GrammarBuilder schema(kNoTime), regex(kNoTime), built(kNoTime);
  const auto is_late = [](const Error& error) {
    return error.message.find("to prepare") != std::string::npos;
  };
  const auto from_schema = json_schema_expression(schema, R"({"type":"null"})");
  const auto from_regex = regex_expression(regex, "ab");
  const auto grammar = built.build(built.literal("a"));
  ASSERT_FALSE(from_schema.ok() || from_regex.ok() || grammar.ok());
  EXPECT_TRUE(is_late(from_schema.error())) << from_schema.error().message;
  EXPECT_TRUE(is_late(from_regex.error())) << from_regex.error().message;
  EXPECT_TRUE(is_late(grammar.error())) << grammar.error().message;
}

TEST(HostileGrammars, LimitsAreExact) {
  const auto nested = [](int depth) {
    return parse_gbnf("root ::= " + times("(", depth) + "\"a\"" + times(")", depth)).ok();
  };
  EXPECT_TRUE(nested(GrammarLimits::kNesting));
  EXPECT_FALSE(nested(GrammarLimits::kNesting + 1));
  EXPECT_TRUE(parse_gbnf("root ::= \"a\"{4096}").ok());
  EXPECT_FALSE(parse_gbnf("root ::= \"a\"{4097}").ok());
  EXPECT_TRUE(grammar_of_regex("a{4096}").ok());
  EXPECT_FALSE(grammar_of_regex("a{0,4097}").ok());
  const std::string body = "root ::= \"a\"";
  EXPECT_TRUE(parse_gbnf(body + std::string(GrammarLimits::kTextBytes - body.size(), ' ')).ok());
  EXPECT_FALSE(parse_gbnf(body + std::string(GrammarLimits::kTextBytes - body.size() + 1, ' ')).ok());
}

}  // namespace
}  // namespace outrider
