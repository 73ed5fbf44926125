// SPDX-License-Identifier: Apache-2.0
// Every kind of learned drafter, with fake weights on the small target, leaves the output as it is.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/methods.h"
#include "tests/lossless/lossless.h"
#include "tests/lossless/test_heads.h"

namespace outrider {
namespace {

struct Case {
  Variant variant;
  Numerics numerics;
};

std::vector<Case> cases_of(const std::string& method) {
  const std::string dynamic = ",max_draft_len=4,dynamic_tree_max_topK=6,max_total_draft_tokens=40";
  const std::vector<Variant> ways = {
      {.batch = 4, .threads = 1},
      {.page_size = 1, .batch = 1, .prefill_chunk = 4, .threads = 1},
      {.page_size = 4, .batch = 3, .prefill_chunk = 5, .preempt_every = 5, .threads = 1},
  };
  std::vector<Case> all;
  const auto add = [&](const std::string& speculative, Variant variant, const Numerics& numerics = {}) {
    variant.speculative = speculative;
    all.push_back({variant, numerics});
  };
  for (const std::string& shape :
       {std::string(), std::string(",max_draft_len=3"), std::string(",expansion=[6,2,1]"), dynamic}) {
    for (const Variant& way : ways) add(method + shape, way);
  }
  const std::vector<std::string> combined = {"combine=[Suffix," + method + "]" + dynamic,
                                             "combine=[EarlyExit," + method + "],exit_layer=1" + dynamic,
                                             "combine=[" + method + ",EarlyExit],exit_layer=1" + dynamic,
                                             "decoding_type=auto" + dynamic,
                                             method + ",max_draft_len=2,policy=auto"};
  for (size_t i = 0; i < combined.size(); ++i) {
    Variant together = ways[i % 3];
    together.threads = 2;
    add(combined[i], together);
    add(combined[i], ways[(i + 1) % 3]);
  }
  for (const WeightPrecision weights :
       {WeightPrecision::kF32, WeightPrecision::kQ8_0, WeightPrecision::kQ8, WeightPrecision::kQ4})
    add(method + dynamic, ways[2], {.weights = weights});
  for (const KvCacheType type :
       {KvCacheType::kF32, KvCacheType::kF16, KvCacheType::kE4M3, KvCacheType::kQ8_0})
    add(method + dynamic, ways[2], {.kv_cache_type = type});
  return all;
}

// The output of plain decoding, which no other choice changes.
const std::vector<Completion>& plain_completions(const Numerics& numerics, double temperature) {
  static std::map<std::pair<std::string, double>, std::vector<Completion>> known;
  auto& completions = known[{describe(numerics), temperature}];
  if (completions.empty())
    completions = run_variant(numerics, {.batch = 4, .threads = 1}, token_workload(temperature));
  return completions;
}

class LearnedDrafters : public testing::TestWithParam<HeadCase> {};

// Fake heads are seldom right. Some of their drafts must be accepted for the test to cover the state after
// acceptance.
TEST_P(LearnedDrafters, TokensAreThoseOfPlainDecoding) {
  const auto head = GetParam().make();
  const auto path = head->write();
  int64_t accepted = 0;
  for (const double temperature : {0.0, 1.0}) {
    for (Case one : cases_of(method_key(GetParam().method))) {
      one.variant.head = path;
      const auto drafted = run_variant(one.numerics, one.variant, token_workload(temperature));
      expect_same(plain_completions(one.numerics, temperature), drafted,
                  describe(one.variant) + ", " + describe(one.numerics));
      if (HasFatalFailure()) return;
      int64_t proposed = 0;
      for (const Completion& completion : drafted) {
        proposed += completion.speculation.drafted;
        accepted += completion.speculation.accepted;
      }
      if (one.variant.speculative.find("auto") == std::string::npos) {
        EXPECT_GT(proposed, 100) << describe(one.variant);
      }
    }
  }
  EXPECT_GT(accepted, 50);
}

INSTANTIATE_TEST_SUITE_P(Heads, LearnedDrafters, testing::ValuesIn(head_cases()),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Models, LearnedDrafters, testing::Values(pard_case()),
                         [](const auto& info) { return std::string(info.param.name); });

// The target holds 32 bits, as the head's matrices would if each code became a separate number.
TEST(LearnedDrafter, AHeadOfCodesIsPackedInEightBitsBesideEveryTarget) {
  const auto weight_bytes = [](FakeHead::Matrices matrices) {
    const auto made = make_recurrent("eagle3");
    made->matrices = matrices;
    const auto parts =
        open_variant({}, {.speculative = "eagle3,max_draft_len=3", .head = made->write()}, small_target());
    EXPECT_TRUE(parts.ok()) << parts.error().message;
    return parts.ok() ? static_cast<double>((*parts)->drafter->memory().weight_bytes) : 0.0;
  };
  EXPECT_LT(weight_bytes(FakeHead::Matrices::kBytes), 0.5 * weight_bytes(FakeHead::Matrices::kPlain));
}

}  // namespace
}  // namespace outrider
