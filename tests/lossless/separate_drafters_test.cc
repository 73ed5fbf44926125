// SPDX-License-Identifier: Apache-2.0
// Drafters name weights, rows and cached entries, and follow none of them: where nothing lies at these names,
// they draft the same trees.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/methods.h"
#include "models/backend/separate_backend.h"
#include "tests/lossless/lossless.h"
#include "tests/lossless/test_heads.h"

namespace outrider {
namespace {

// While it lives, models that are opened have backends out of reach.
struct OutOfReach {
  OutOfReach() { backend_kinds().push_back({"separate", make_separate_backend}); }
  ~OutOfReach() { backend_kinds().pop_back(); }
};

// Such a backend gives the texts, the drafts and the accepted drafts that this machine gives.
void expect_same_drafts(const Variant& variant, const Workload& workload) {
  SCOPED_TRACE(describe(variant));
  const auto here = run_variant({}, variant, workload);
  const OutOfReach out_of_reach;
  const auto there = run_variant({}, variant, workload);
  expect_same(here, there, describe(variant));
  ASSERT_EQ(here.size(), there.size());
  if (variant.speculative.starts_with("auto")) return;  // its drafts depend on measured times
  int64_t drafted = 0;
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_EQ(here[i].speculation.drafted, there[i].speculation.drafted) << i;
    EXPECT_EQ(here[i].speculation.accepted, there[i].speculation.accepted) << i;
    drafted += here[i].speculation.drafted;
  }
  EXPECT_GT(drafted, 0);
}

TEST(SeparateDrafters, EveryDrafterOfTheSuites) {
  const Workload workload{.prompts = mixed_prompts(4), .max_tokens = 12};
  for (const std::string& drafter : drafters()) {
    expect_same_drafts({.speculative = drafter + ",max_draft_len=4", .batch = 3, .prefill_chunk = 7},
                       workload);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SeparateDrafters, EveryKindOfHead) {
  std::vector<HeadCase> cases = head_cases();
  cases.push_back(pard_case());
  for (const HeadCase& one : cases) {
    SCOPED_TRACE(one.name);
    const auto head = one.make();
    for (const char* shape : {",max_draft_len=3", ",expansion=[6,2,1]"}) {
      const Variant variant{.speculative = std::string(method_key(one.method)) + shape,
                            .page_size = 4,
                            .batch = 3,
                            .prefill_chunk = 5,
                            .preempt_every = 5,
                            .head = head->write()};
      expect_same_drafts(variant, token_workload(1.0, 16));
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(SeparateDrafters, TheAssistantOfATarget) {
  for (const bool has_clusters : {false, true}) {
    Workload workload = token_workload(0.0, 16);
    workload.target = gemma_target();
    const auto made = make_assistant(has_clusters);
    const Variant variant{.speculative = "assistant,max_draft_len=3", .batch = 3, .head = made->write()};
    expect_same_drafts(variant, workload);
  }
}

}  // namespace
}  // namespace outrider
