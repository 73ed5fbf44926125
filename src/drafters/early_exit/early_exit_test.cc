// SPDX-License-Identifier: Apache-2.0
#include "drafters/early_exit/early_exit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrider {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const SpeculativeOptions& options, int64_t layer_count) {
  DrafterContext context;
  context.layer_count = layer_count;
  context.context = 16;
  context.vocab_size = 8;
  const auto made = make_early_exit_drafter(options, context);
  if (made.ok()) return "";
  EXPECT_EQ(made.error().kind, ErrorKind::kUsage);
  return made.error().message;
}

TEST(EarlyExit, ExitLayerLeavesSomethingToVerify) {
  SpeculativeOptions options;
  EXPECT_EQ(refusal(options, 6), "");
  EXPECT_EQ(refusal(options, 2), "");
  EXPECT_THAT(refusal(options, 1), AllOf(HasSubstr("1 layers"), HasSubstr("found 1")));
  options.early_exit.exit_layer = 5;
  EXPECT_EQ(refusal(options, 6), "");
  options.early_exit.exit_layer = 6;
  EXPECT_THAT(refusal(options, 6), AllOf(HasSubstr("1 to 5"), HasSubstr("found 6")));
  options.early_exit.exit_layer = -1;
  EXPECT_THAT(refusal(options, 6), HasSubstr("found -1"));
}

TEST(EarlyExit, SkippedLayersExistAndLeaveSomethingToDraftWith) {
  SpeculativeOptions options;
  options.early_exit.skip_attention_layers = {0, 1};
  EXPECT_EQ(refusal(options, 2), "");
  options.early_exit.skip_mlp_layers = {1};
  EXPECT_EQ(refusal(options, 2), "");
  options.early_exit.skip_mlp_layers = {1, 0};
  EXPECT_THAT(refusal(options, 2), HasSubstr("found all of it"));
  options.early_exit.skip_mlp_layers = {2};
  EXPECT_THAT(refusal(options, 2), AllOf(HasSubstr("0 to 1"), HasSubstr("found 2")));
  options.early_exit.skip_mlp_layers = {1};
  options.early_exit.exit_layer = 1;
  EXPECT_THAT(refusal(options, 2), HasSubstr("found both"));
}

TEST(EarlyExit, ADynamicTreeFitsItsStagedEntries) {
  SpeculativeOptions options;
  options.tree.kind = TreeKind::kDynamic;
  options.max_draft_len = 6;
  options.tree.dynamic_tree_max_top_k = 4;
  options.tree.max_total_draft_tokens = 24;
  EXPECT_EQ(refusal(options, 6), "");
  options.tree.max_total_draft_tokens = 23;
  EXPECT_THAT(refusal(options, 6), AllOf(HasSubstr("at least 24"), HasSubstr("found 23")));
}

// g' = g + .01 below nine in ten, g - .01 above unless all that may be was drafted; g = .9 g + .1 g'; the
// rate is a running mean of halves (2309.08168).
TEST(EarlyExit, TheThresholdFollowsTheAcceptanceRate) {
  AdaptiveThreshold threshold(0.8);
  threshold.update(1, 2, 4);  // rate .5
  EXPECT_NEAR(threshold.value(), 0.801, 1e-12);
  threshold.update(2, 2, 4);  // rate .75
  EXPECT_NEAR(threshold.value(), 0.802, 1e-12);
  threshold.update(2, 2, 4);  // rate .875
  EXPECT_NEAR(threshold.value(), 0.803, 1e-12);
  threshold.update(2, 2, 4);  // rate .9375
  EXPECT_NEAR(threshold.value(), 0.802, 1e-12);
  threshold.update(4, 4, 4);
  EXPECT_NEAR(threshold.value(), 0.802, 1e-12);
  threshold.update(0, 1, 4);
  EXPECT_NEAR(threshold.value(), 0.803, 1e-12);
}

}  // namespace
}  // namespace outrider
