// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/speculation_limits.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(SpeculationLimits, WithoutOptionsThereIsNone) {
  SpeculationLimits limits{SpeculativeOptions()};
  limits.add_finished(0, 1000);
  EXPECT_GE(limits.max_draft_len(1), 64);
  EXPECT_GE(limits.max_draft_len(1000), 64);
}

TEST(SpeculationLimits, ARowOfTheScheduleHoldsUpToTheNext) {
  SpeculativeOptions options;
  options.draft_len_by_batch = {{1, 4}, {5, 2}, {33, 0}};
  const SpeculationLimits limits(options);
  for (const auto& [sequences, levels] : {std::pair{1, 4}, {4, 4}, {5, 2}, {32, 2}, {33, 0}, {500, 0}})
    EXPECT_EQ(limits.max_draft_len(sequences), levels) << sequences;
}

TEST(SpeculationLimits, DraftingEndsForGoodWhenTheWindowFallsBelowTheThreshold) {
  SpeculativeOptions options;
  options.acceptance_window = 2;
  options.acceptance_length_threshold = 0.6;
  SpeculationLimits limits(options);
  limits.add_finished(1, 10);  // 0.1; the window is not full
  EXPECT_GT(limits.max_draft_len(1), 0);
  limits.add_finished(12, 10);  // mean 0.65
  limits.add_finished(0, 0);    // a request that never drafted says nothing
  EXPECT_GT(limits.max_draft_len(1), 0);
  limits.add_finished(0, 10);  // the mean of 1.2 and 0 is the threshold itself
  EXPECT_GT(limits.max_draft_len(1), 0);
  limits.add_finished(5, 10);
  EXPECT_EQ(limits.max_draft_len(1), 0);
  limits.add_finished(40, 10);
  limits.add_finished(40, 10);
  EXPECT_EQ(limits.max_draft_len(1), 0);
}

}  // namespace
}  // namespace outrider
