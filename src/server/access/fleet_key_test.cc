// SPDX-License-Identifier: Apache-2.0
#include "server/access/fleet_key.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(FleetKey, TheHeaderTellsTheScope) {
  const FleetKey key("0123456789abcdef");
  EXPECT_EQ(key.scope_in(key.header(0)), 0u);
  EXPECT_EQ(key.scope_in(key.header(UINT64_MAX)), UINT64_MAX);
}

TEST(FleetKey, NoTwoAreAlike) {
  const FleetKey one = FleetKey::make(), other = FleetKey::make();
  EXPECT_EQ(one.text().size(), 32u);
  EXPECT_FALSE(one.scope_in(other.header(1)));
  EXPECT_EQ(one.scope_in(one.header(1)), 1u);
}

TEST(FleetKey, OtherHeadersTellNone) {
  const FleetKey key("0123456789abcdef");
  for (const char* header : {"", "7", " 7", "0123456789abcdef", "0123456789abcdef ", "0123456789abcdef7",
                             "0123456789abcdeg 7", "0123456789abcde 7", "0123456789abcdef -7",
                             "0123456789abcdef 7 ", "0123456789abcdef 99999999999999999999"})
    EXPECT_FALSE(key.scope_in(header)) << header;
  EXPECT_FALSE(FleetKey().scope_in(""));
  EXPECT_FALSE(FleetKey().scope_in(" 7"));
}

}  // namespace
}  // namespace outrider
