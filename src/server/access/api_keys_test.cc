// SPDX-License-Identifier: Apache-2.0
#include "server/access/api_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outrider {
namespace {

TEST(ApiKeys, EachHasItsOwnScope) {
  const auto keys =
      ApiKeys::parse("# names may stand here\n0123456789abcdef-one\r\n\n  0123456789abcdef-two  ", "keys");
  ASSERT_TRUE(keys.ok()) << keys.error().message;
  EXPECT_TRUE(keys->required());
  const auto one = keys->scope_of("0123456789abcdef-one"), two = keys->scope_of("0123456789abcdef-two");
  ASSERT_TRUE(one && two);
  EXPECT_NE(*one, *two);
}

TEST(ApiKeys, HaveNamesForTheLog) {
  const auto keys = ApiKeys::parse("0123456789abcdef-one team-a\n0123456789abcdef-two\n", "keys");
  ASSERT_TRUE(keys.ok()) << keys.error().message;
  EXPECT_EQ(keys->name_of("0123456789abcdef-one"), "team-a");
  EXPECT_EQ(keys->name_of("0123456789abcdef-two"), "key-2");
  EXPECT_EQ(keys->name_of("0123456789abcdef-three"), "");
  EXPECT_FALSE(keys->scope_of("0123456789abcdef-one team-a"));
  EXPECT_FALSE(ApiKeys::parse("0123456789abcdef-one team a\n", "keys").ok());
  EXPECT_FALSE(ApiKeys::parse("0123456789abcdef-one " + std::string(65, 'a'), "keys").ok());
}

TEST(ApiKeys, NothingElseOpens) {
  const auto keys = ApiKeys::parse("0123456789abcdef-one", "keys");
  ASSERT_TRUE(keys.ok());
  for (const std::string key : {"", "0", "0123456789abcdef-on", "0123456789abcdef-onE",
                                "0123456789abcdef-one ", "0123456789abcdef-oneX", "# names may stand here"}) {
    EXPECT_FALSE(keys->scope_of(key)) << key;
  }
  EXPECT_FALSE(ApiKeys().required());
}

TEST(ApiKeys, KeysGivenOneByOneOpenToo) {
  const std::vector<std::string> given = {"0123456789abcdef-one", "0123456789abcdef-two"};
  const auto keys = ApiKeys::collect({}, given);
  ASSERT_TRUE(keys.ok()) << keys.error().message;
  EXPECT_TRUE(keys->scope_of(given[0]) && keys->scope_of(given[1]));
  EXPECT_FALSE(ApiKeys::collect({}, {})->required());
  EXPECT_FALSE(keys->has_short());
  const std::vector<std::string> wrong = {"sec ret key"};
  const auto refused = ApiKeys::collect({}, wrong);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message.find("ret"), std::string::npos) << refused.error().message;
}

TEST(ApiKeys, ShortOnesAreKnownAsSuch) {
  const std::vector<std::string> given = {"sk-test"};
  const auto keys = ApiKeys::collect({}, given);
  ASSERT_TRUE(keys.ok()) << keys.error().message;
  EXPECT_TRUE(keys->has_short());
  EXPECT_TRUE(keys->scope_of("sk-test"));
}

TEST(ApiKeys, ErrorsNameTheLineAndNotTheKey) {
  for (const std::string text :
       {"", "# only\n", "short\n", "with a space in it at all\n", "0123456789abcdef\x01x\n"}) {
    EXPECT_FALSE(ApiKeys::parse(text, "keys").ok()) << text;
  }
  const std::string message = ApiKeys::parse("0123456789abcdef\nsecret\n", "keys").error().message;
  EXPECT_NE(message.find("keys:2"), std::string::npos) << message;
  EXPECT_EQ(message.find("secret"), std::string::npos) << message;
}

}  // namespace
}  // namespace outrider
