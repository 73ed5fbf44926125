// SPDX-License-Identifier: Apache-2.0
#include "drafters/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "config/methods.h"

namespace outrider {
namespace {

using testing::HasSubstr;

SpeculativeOptions options_of(Method method) {
  SpeculativeOptions options;
  options.decoding_type = method;
  return options;
}

// Methods without a maker are the ones that resolve_speculation() replaces by others.
TEST(Registry, EveryMethodHasAMaker) {
  for (const MethodRow& row : method_table()) {
    if (row.needs == MethodNeeds::kDraftModel || row.method == Method::kEarlyExit)
      continue;  // needs a target
    const auto made = make_drafter(options_of(row.method), {});
    const std::string message = made.ok() ? "" : made.error().message;
    EXPECT_EQ(message.find("stands for others") != std::string::npos, row.method == Method::kAuto) << message;
    EXPECT_TRUE(made.ok() || row.needs != MethodNeeds::kNothing) << message;
    if (row.needs == MethodNeeds::kHead) {
      EXPECT_THAT(message, HasSubstr("expects speculative_model"));
    }
    if (made.ok()) {
      EXPECT_EQ((*made)->traits().name, row.name);
    }
  }
}

TEST(Registry, LengthsBeyondTheLimitAreRefused) {
  for (const int length : {0, kMaxDraftLen + 1}) {
    SpeculativeOptions options = options_of(Method::kNGram);
    options.max_draft_len = length;
    EXPECT_THAT(make_drafter(options, {}).error().message, HasSubstr("1 to 64"));
  }
}

TEST(Registry, LimitsAreThoseOfTheTree) {
  EXPECT_EQ(limits_of(options_of(Method::kNone)).max_nodes, 0);
  EXPECT_EQ(limits_of(options_of(Method::kNGram)).max_draft_len, 4);
  EXPECT_EQ(limits_of(options_of(Method::kUserProvided)).max_nodes, kUserTreeNodes);
  const DraftLimits window = limits_of(options_of(Method::kLookahead));
  SpeculativeOptions combined = options_of(Method::kCombined);
  combined.combine = {Method::kNGram};
  const DraftLimits without = limits_of(combined);
  combined.combine = {Method::kNGram, Method::kLookahead};
  EXPECT_EQ(limits_of(combined).max_nodes, 2 * without.max_nodes + window.max_nodes);
  EXPECT_EQ(limits_of(combined).max_draft_len, std::max(without.max_draft_len, window.max_draft_len));
}

}  // namespace
}  // namespace outrider
