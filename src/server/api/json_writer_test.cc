// SPDX-License-Identifier: Apache-2.0
#include "server/api/json_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace outrider {
namespace {

TEST(JsonWriter, SetsCommasInNestedObjectsAndArrays) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("a", 1).key("b").begin_array();
  json.begin_object().end_object().begin_object().member("c", true).end_object();
  json.end_array().key("d").begin_object().end_object().key("e").null().end_object();
  EXPECT_EQ(text, R"({"a":1,"b":[{},{"c":true}],"d":{},"e":null})");
}

TEST(JsonWriter, WritesEachKindOfValue) {
  std::string text;
  JsonWriter json(text);
  json.begin_array().value("a\"b").value(-3).value(0.1F).value(0.1).value(rounded(1.00006)).value(true);
  json.value(text_or_null("")).value(text_or_null("x")).value(std::vector<int>{1, 2});
  json.value(std::vector<int>{})
      .value(std::numeric_limits<double>::infinity())
      .json(R"({"z":1})")
      .end_array();
  EXPECT_EQ(text, R"(["a\"b",-3,0.1,0.1,1.0001,true,null,"x",[1,2],[],null,{"z":1}])");
}

TEST(JsonWriter, ContinuesWhatAnotherWriterBegan) {
  std::string text;
  JsonWriter(text).begin_object().key("items").begin_array();
  JsonWriter(text).value(1).value(2);
  JsonWriter(text, true).value(3).end_array().end_object();
  EXPECT_EQ(text, R"({"items":[1,2,3]})");
}

}  // namespace
}  // namespace outrider
