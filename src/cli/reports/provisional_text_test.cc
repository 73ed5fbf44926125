// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/provisional_text.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(ProvisionalText, ShowsEveryTokenOnceWhereTheServerAgrees) {
  ProvisionalText text(false);
  EXPECT_EQ(text.push("Once "), "Once ");
  EXPECT_EQ(text.push_alone("upon "), "[offline] upon ");
  EXPECT_EQ(text.push_alone("a time"), "a time");
  EXPECT_EQ(text.push("upon"), "");
  EXPECT_EQ(text.push(" a time, there"), ", there");
  EXPECT_EQ(text.push_alone(" was"), "[offline]  was");
}

TEST(ProvisionalText, SaysWhereTheServersTextIsAnother) {
  ProvisionalText text(true);
  EXPECT_EQ(text.push_alone("red ball"), "\x1b[33m[offline] red ball\x1b[0m");
  EXPECT_EQ(text.push("red "), "");
  EXPECT_EQ(text.push("door"), "\x1b[33m\n[online, the server's own text from here] \x1b[0mdoor");
  EXPECT_EQ(text.push("."), ".");
}

}  // namespace
}  // namespace outrider
