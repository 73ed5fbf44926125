// SPDX-License-Identifier: Apache-2.0
// Chains and trees do not change the output of small random models of every family, greedily and sampled.
// Pages have one entry or many, also where pages before the sliding windows are given back.
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>

#include "models/model_test_data.h"
#include "tests/lossless/lossless.h"

namespace outrider {
namespace {

class FamilyTest : public testing::TestWithParam<std::string> {};

TEST_P(FamilyTest, DraftsChangeNothing) {
  const std::string model = std::string(OUTRIDER_SOURCE_DIR "/tests/data/models/") + GetParam();
  for (const double temperature : {0.0, 0.8}) {
    Workload workload = token_workload(temperature, 30);  // fits the shortest table of positions
    workload.target = model;
    const Numerics numerics{
        .kernels = "", .weights = WeightPrecision::kAuto, .kv_cache_type = KvCacheType::kAuto};
    const auto plain = run_variant(numerics, {}, workload);
    const Variant variants[] = {
        {.speculative = "ngram,max_draft_len=4", .page_size = 1},
        {.speculative = "draft_target,expansion=[2,2,1]", .page_size = 4, .batch = 3, .head = model},
        {.speculative = "draft_target,max_draft_len=5",
         .prefill_chunk = 7,
         .preempt_every = 5,
         .head = model},
        {.speculative = "early_exit,exit_layer=1,expansion=[3,1,1]", .page_size = 4}};
    for (const Variant& variant : variants)
      expect_same(plain, run_variant(numerics, variant, workload), describe(variant));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyTest, testing::ValuesIn(all_models()),
                         [](const auto& info) { return info.param; });

// Every drafter without a network, with every tree.
void expect_no_drafter_changes(std::span<const char* const> models) {
  constexpr std::array kDrafters = {"ngram",
                                    "suffix",
                                    "lookahead",
                                    "draft_target",
                                    "auto",
                                    "combine=[ngram,draft_target]",
                                    "early_exit,exit_layer=1"};
  constexpr std::array kPages = {1, 4, 16};
  size_t turn = 0;
  for (const char* name : models) {
    const std::string model = std::string(OUTRIDER_SOURCE_DIR "/tests/data/models/") + name;
    for (const double temperature : {0.0, 0.8}) {
      Workload workload = token_workload(temperature, 30);
      workload.target = model;
      const auto plain = run_variant({}, {}, workload);
      for (const char* drafter : kDrafters) {
        for (const std::string& shape : shapes()) {
          const Variant variant{.speculative = std::string(drafter) + "," + shape,
                                .page_size = kPages[turn % 3],
                                .batch = turn % 2 == 0 ? 1 : 4,
                                .prefill_chunk = 1 + static_cast<int>(turn * 37 % 60),
                                .preempt_every = turn % 5 == 0 ? 5 : 0,
                                .threads = 1 + static_cast<int>(turn % 2),
                                .head = model};
          expect_same(plain, run_variant({}, variant, workload), model + ", " + describe(variant));
          if (testing::Test::HasFatalFailure()) return;
          ++turn;
        }
      }
    }
  }
}

// Routers of both kinds: rows of drafts, of other sequences and of prompts activate other experts for each
// other.
TEST(MixturesOfExperts, NoDrafterAndNoTreeChangesAnything) {
  constexpr std::array kModels = {"qwen2_moe", "gpt_oss", "glm4_moe"};
  expect_no_drafter_changes(kModels);
}

// Rejected nodes, preemption and other sequences leave no trace in the states of recurrent layers.
TEST(Hybrids, NoDrafterAndNoTreeChangesAnything) {
  constexpr std::array kModels = {"lfm2", "qwen3_5", "qwen3_5_moe"};
  expect_no_drafter_changes(kModels);
}

TEST(LatentAttention, NoDrafterAndNoTreeChangesAnything) {
  constexpr std::array kModels = {"deepseek_v2", "deepseek_v3"};
  expect_no_drafter_changes(kModels);
}

}  // namespace
}  // namespace outrider
