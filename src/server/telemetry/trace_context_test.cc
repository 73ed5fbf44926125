// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/trace_context.h"

#include <gtest/gtest.h>

#include <string>

namespace outrider {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736", kParent = "00f067aa0ba902b7";
const std::string kValid = "00-" + kTrace + "-" + kParent + "-01";

TEST(TraceContext, ReadsTheExampleOfTheStandard) {
  const auto trace = parse_traceparent(kValid);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->trace_id, kTrace);
  EXPECT_EQ(trace->parent_id, kParent);
  EXPECT_TRUE(trace->is_sampled);
  EXPECT_FALSE(parse_traceparent("00-" + kTrace + "-" + kParent + "-00")->is_sampled);
}

TEST(TraceContext, WritesItsOwnSpanAndOnlyTheFlagThatItKnows) {
  auto trace = parse_traceparent("00-" + kTrace + "-" + kParent + "-ff");
  ASSERT_TRUE(trace);
  trace->span_id = "0123456789abcdef";
  EXPECT_EQ(trace->header(), "00-" + kTrace + "-0123456789abcdef-01");
}

TEST(TraceContext, LaterVersionsMayBeLonger) {
  EXPECT_TRUE(parse_traceparent("cc-" + kTrace + "-" + kParent + "-01"));
  EXPECT_TRUE(parse_traceparent("cc-" + kTrace + "-" + kParent + "-01-what-the-future-adds"));
  EXPECT_FALSE(parse_traceparent("cc-" + kTrace + "-" + kParent + "-01.what"));
}

TEST(TraceContext, EverythingElseIsIgnored) {
  const std::string zeros32(32, '0'), zeros16(16, '0');
  for (const std::string& text :
       {std::string(), std::string("00"), kValid + "-", kValid + "1", "ff" + kValid.substr(2),
        "00-" + zeros32 + "-" + kParent + "-01", "00-" + kTrace + "-" + zeros16 + "-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + kParent + "-01", "0x-" + kTrace + "-" + kParent + "-01",
        "00_" + kTrace + "-" + kParent + "-01", "00-" + kTrace + "_" + kParent + "-01",
        "00-" + kTrace + "-" + kParent + "_01", "00-" + kTrace + "-" + kParent + "-0g"}) {
    EXPECT_FALSE(parse_traceparent(text)) << text;
  }
  // No byte of a valid header may be another one that is no digit.
  for (size_t i = 0; i < kValid.size(); ++i) {
    std::string text = kValid;
    text[i] = 'G';
    EXPECT_FALSE(parse_traceparent(text)) << text;
  }
}

}  // namespace
}  // namespace outrider
