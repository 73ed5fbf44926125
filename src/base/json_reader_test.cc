// SPDX-License-Identifier: Apache-2.0
#include "base/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

namespace outrider {
namespace {

using testing::HasSubstr;

constexpr std::string_view kText =
    R"({"a": {"b": [1, 2.5, "x", null, true]}, "line\nbreak": 7, "none": null, "big": 18446744073709551615})";

class JsonReader : public testing::Test {
 protected:
  JsonField field(std::string_view key) const { return *document_->root().at(key); }
  std::vector<JsonField> list() const { return *field("a").at("b")->items(8); }

 private:
  Result<JsonDocument> document_ = JsonDocument::parse(kText, 8);
};

TEST_F(JsonReader, ReadsByType) {
  EXPECT_EQ(*list()[0].integer(1, 5), 1);
  EXPECT_EQ(*list()[1].number(2, 3), 2.5);
  EXPECT_EQ(*list()[2].string(), "x");
  EXPECT_TRUE(list()[3].is_null());
  EXPECT_TRUE(*list()[4].boolean());
  constexpr std::string_view kNames[] = {"w", "x"};
  EXPECT_EQ(*list()[2].one_of(kNames), 1);
  EXPECT_EQ(field("a").members(8)->front().key(), "b");
  EXPECT_EQ(field("a").json(), R"({"b":[1,2.5,"x",null,true]})");
  EXPECT_EQ(field("a").size(), 1u);
}

TEST_F(JsonReader, VisitsItemsUntilTheFirstError) {
  std::vector<std::string> paths;
  const auto visit = [&](const JsonField& item) -> Status {
    paths.push_back(item.path());
    if (item.is_string()) return item.fail("stop");
    return {};
  };
  EXPECT_EQ(field("a").at("b")->each(visit).error().message, "a.b[2]: stop");
  EXPECT_EQ(paths, (std::vector<std::string>{"a.b[0]", "a.b[1]", "a.b[2]"}));
  EXPECT_EQ(field("big").each(visit).error().message, "big: expected an array, found 18446744073709551615");
}

TEST_F(JsonReader, ErrorsNamePathExpectedAndFound) {
  EXPECT_EQ(list()[0].string().error().message, "a.b[0]: expected a string, found 1");
  EXPECT_EQ(list()[1].integer(0, 9).error().message, "a.b[1]: expected an integer from 0 to 9, found 2.5");
  EXPECT_EQ(list()[2].number(0, 0.5).error().message,
            "a.b[2]: expected a number from 0 to 0.5, found a string, 'x'");
  EXPECT_EQ(list()[3].boolean().error().message, "a.b[3]: expected a boolean, found null");
  EXPECT_EQ(list()[4].object().error().message, "a.b[4]: expected an object, found true");
  EXPECT_EQ(field("big").integer().error().message,
            "big: expected an integer below 2^63, found 18446744073709551615");
  EXPECT_EQ(field("line\nbreak").array().error().message, "line\\x0abreak: expected an array, found 7");
  EXPECT_EQ(field("a").items(8).error().message, "a: expected an array, found an object");
  EXPECT_EQ(field("a").at("b")->items(4).error().message, "a.b: expected at most 4 entries, found 5");
  EXPECT_EQ(field("a").at("c").error().message, "a: expected an object with 'c', found an object");
}

TEST_F(JsonReader, AbsentAndNullMembersGiveTheFallback) {
  const auto document = JsonDocument::parse(kText, 8);
  const JsonField root = document->root();
  EXPECT_EQ(*root.string_at("none", "fallback"), "fallback");
  EXPECT_TRUE(*root.boolean_at("absent", true));
  EXPECT_FALSE(root.boolean_at("a", true).ok());
  EXPECT_FALSE(root.find("none"));
  EXPECT_FALSE(field("big").find("x"));
}

TEST(JsonDocument, LimitsDepthAndRefusesOtherTexts) {
  EXPECT_TRUE(JsonDocument::parse("[[[]]]", 4).ok());
  EXPECT_THAT(JsonDocument::parse("[[[[[]]]]]", 4).error().message, HasSubstr("deeper than 4 levels"));
  for (const std::string_view text : {"", " ", "{", "[1,]", "\"\xff\"", "{} {}"})
    EXPECT_THAT(JsonDocument::parse(text, 4).error().message, HasSubstr("not valid JSON")) << text;
}

TEST(JsonDocument, ReadsNumbersOfAnySize) {
  const auto number = [](const std::string& text) {
    const auto document = JsonDocument::parse("[" + text + "]", 4);
    return document.ok() ? *document->root().items(1)->front().number(-DBL_MAX, DBL_MAX) : NAN;
  };
  EXPECT_EQ(number("1000000000000000019884624838656"), 1e30);
  EXPECT_EQ(number("-9223372036854775809"), -9223372036854775808.0);
  EXPECT_EQ(number("18446744073709551616"), 18446744073709551616.0);
  EXPECT_EQ(number(std::string(400, '9')), 1e308);
  EXPECT_EQ(number("1e400"), 1e308);
  EXPECT_EQ(number("-1.5E+99999999999999999999"), -1e308);
  EXPECT_EQ(number(std::string(400, '9') + "e-300"), 1e100);
  EXPECT_EQ(number("1e-400"), 0.0);
}

TEST(JsonDocument, LeavesAllElseBesideAGreatNumber) {
  const auto document = JsonDocument::parse(
      R"({"1e400\\": "\"-18446744073709551616", "b": [1e999, 18446744073709551615, -0.5, 7]})", 4);
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(document->root().json(),
            R"({"1e400\\":"\"-18446744073709551616","b":[1e+308,18446744073709551615,-0.5,7]})");
  EXPECT_EQ(document->root().at("b")->items(4)->front().integer(1, 9).error().message,
            "b[0]: expected an integer from 1 to 9, found 1e+308");
}

TEST(JsonDocument, RefusesMalformedNumbersBesideAGreatOne) {
  for (const std::string_view text :
       {"1e400.", "01e400", "-", "1.e400", "1e", "1e400e400", "99999999999999999999a",
        "099999999999999999999", "-e400", "1e+", "\"1e400", "\"\\"})
    EXPECT_FALSE(JsonDocument::parse(text, 4).ok()) << text;
}

TEST(JsonDocument, FindsADuplicateKeyWithItsPath) {
  const auto path = [](std::string_view text) {
    const auto document = JsonDocument::parse(text, 8);
    const auto duplicate = document->find_duplicate_key();
    return duplicate ? duplicate->path() : "none";
  };
  EXPECT_EQ(path(R"({"a":1,"b":{"a":1}})"), "none");
  EXPECT_EQ(path(R"({"a":1,"a":2})"), "a");
  EXPECT_EQ(path(R"({"a":[0,{"b":1,"\u0062":1}]})"), "a[1].b");
  EXPECT_EQ(path("3"), "none");
}

}  // namespace
}  // namespace outrider
