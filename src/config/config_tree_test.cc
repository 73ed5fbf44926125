// SPDX-License-Identifier: Apache-2.0
#include "config/config_tree.h"

#include <gtest/gtest.h>

#include <string>

namespace outrider {
namespace {

std::string repeated(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

TEST(ConfigTree, KeepsOrderLinesAndText) {
  const auto tree = parse_config("a: 1\nb:\n  - x\n  - 'null'\nc: ~\n", "t.yaml");
  ASSERT_TRUE(tree.ok()) << tree.error().message;
  ASSERT_EQ(tree->members.size(), 3u);
  EXPECT_EQ(tree->members[0].value.text, "1");
  EXPECT_EQ(tree->members[1].line, 2);
  ASSERT_EQ(tree->members[1].value.items.size(), 2u);
  EXPECT_EQ(tree->members[1].value.items[1].text, "null");
  EXPECT_EQ(tree->members[2].value.kind, ConfigNode::Kind::kNull);
}

TEST(ConfigTree, ReadsJsonAndByteOrderMark) {
  const auto json = parse_config(R"({"a":{"b":[1,true]},"c":"x y"})", "t.json");
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(json->members[0].value.members[0].value.items[1].text, "true");
  const auto bom = parse_config(
      "\xEF\xBB\xBF"
      "a: 1\n",
      "t.yaml");
  ASSERT_TRUE(bom.ok()) << bom.error().message;
  EXPECT_EQ(bom->members[0].key, "a");
}

TEST(ConfigTree, NestingHasALimit) {
  EXPECT_TRUE(parse_config(repeated("[", 64) + repeated("]", 64), "t").ok());
  EXPECT_FALSE(parse_config(repeated("[", 65) + repeated("]", 65), "t").ok());
}

TEST(ConfigTree, MalformedTextIsOneLineWithItsPlace) {
  const std::string texts[] = {
      "a: &x 1\nb: *x\n",
      "a: &x [1]\nb: [*x,*x]\n",
      "*x",
      "a: 1\na: 2\n",
      "{a: 1, a: 2}",
      "a: !!python/object:os.system x\n",
      "a: !local 1\n",
      "? [a]\n: 1\n",
      "? {a: 1}\n: 1\n",
      "[1, 2",
      "{a: 1",
      "a: \"\\q\"\n",
      "a: b: c\n",
      "a:\n\tb: 1\n",
      "a: 1\n---\nb: 2\n",
      "%YAML 9.9\n---\na: 1\n",
      "%TAG\n",
      "]",
      "}",
      "a: [1}\n",
      std::string("a: 1\0b", 6),
      repeated("[", 10000),
      repeated("{a: ", 10000),
      repeated("- ", 10000),
      std::string((1 << 20) + 1, ' '),
      "a: @b\n",
      "a: `b\n",
      "a: 1\n  b: 2\n",
  };
  for (const std::string& text : texts) {
    const auto tree = parse_config(text, "bad.yaml");
    ASSERT_FALSE(tree.ok()) << text.substr(0, 60);
    EXPECT_TRUE(tree.error().message.starts_with("bad.yaml:")) << tree.error().message;
    EXPECT_EQ(tree.error().message.find('\n'), std::string::npos);
  }
}

TEST(ConfigTree, TooManyKeysAreRefused) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "key" + std::to_string(i) + ": 1\n";
  EXPECT_FALSE(parse_config(text, "t").ok());
}

TEST(ConfigTree, MissingFileAndDirectoryAreErrors) {
  EXPECT_FALSE(read_config_file("/nonexistent/a.yaml").ok());
  EXPECT_FALSE(read_config_file("/").ok());
}

}  // namespace
}  // namespace outrider
