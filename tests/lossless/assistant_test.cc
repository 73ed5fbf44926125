// SPDX-License-Identifier: Apache-2.0
// Gemma 4's assistant in the engine: output equals plain decoding, and targets that it does not fit are
// refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lossless/lossless.h"
#include "tests/lossless/test_heads.h"

namespace outrider {
namespace {

using testing::HasSubstr;

TEST(Assistant, OutputIsThatOfPlainDecoding) {
  for (const bool has_clusters : {false, true}) {
    const auto made = make_assistant(has_clusters);
    const std::filesystem::path path = made->write();
    for (const double temperature : {0.0, 0.9}) {
      Workload workload = token_workload(temperature, 30);
      workload.target = gemma_target();
      const auto plain = run_variant({}, {}, workload);
      for (const AcceptanceRule rule :
           {AcceptanceRule::kCoupled, AcceptanceRule::kRejection, AcceptanceRule::kBlock}) {
        if (temperature > 0.0 && rule != AcceptanceRule::kCoupled) continue;
        for (Variant variant :
             {Variant{.speculative = "assistant,max_draft_len=4", .page_size = 1},
              Variant{.speculative = "assistant,expansion=[3,2,1]", .batch = 3, .prefill_chunk = 7},
              Variant{.speculative = "assistant,dynamic_tree_max_topK=3,max_total_draft_tokens=12",
              .page_size = 4,
              .batch = 5,
              .preempt_every = 5},
              Variant{.speculative = "combine=[suffix,assistant],max_draft_len=3", .batch = 2}}) {
          variant.head = path;
          variant.acceptance = rule;
          expect_same(plain, run_variant({}, variant, workload), describe(variant));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Assistant, IsRecognisedAndRefusesOtherTargets) {
  const auto made = make_assistant(false);
  SpeculativeOptions options;
  options.method_unset = true;
  options.speculative_model = made->write();
  const auto resolved = resolved_by_files(options);
  ASSERT_TRUE(resolved.ok()) << resolved.error().message;
  EXPECT_EQ(resolved->decoding_type, Method::kAssistant);
  const auto parts = open_variant({}, {.speculative = "assistant", .head = made->path()}, small_target());
  ASSERT_FALSE(parts.ok());
  EXPECT_THAT(parts.error().message, HasSubstr("family gemma4"));
}

}  // namespace
}  // namespace outrider
