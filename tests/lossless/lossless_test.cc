// SPDX-License-Identifier: Apache-2.0
// A covering sample of the slow suite: every kernel table and weight type, every page size, batch and
// drafter.
#include "tests/lossless/lossless.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "formats/random_model.h"

namespace outrider {
namespace {

const std::vector<Variant> kVariants = {
    {.speculative = "none", .page_size = 1, .batch = 8, .prefill_chunk = 7},
    {.speculative = "ngram,max_draft_len=1", .page_size = 64, .batch = 1},
    {.speculative = "ngram,max_draft_len=16", .page_size = 1, .batch = 8},
    {.speculative = "ngram,max_draft_len=5,tree=dynamic", .page_size = 16, .batch = 8},
    {.speculative = "suffix,max_draft_len=8", .page_size = 16, .batch = 8},
    {.speculative = "suffix,max_draft_len=8,tree=dynamic", .page_size = 1, .batch = 3},
    {.speculative = "lookahead", .page_size = 16, .batch = 8, .prefill_chunk = 40},
    {.speculative = "draft_target,max_draft_len=1", .page_size = 16, .batch = 8, .prefill_chunk = 33},
    {.speculative = "draft_target,max_draft_len=3", .page_size = 1, .batch = 1},
    {.speculative = "draft_target,max_draft_len=4", .page_size = 64, .batch = 8},
    {.speculative = "draft_target,max_draft_len=16", .page_size = 64, .batch = 8},
};

// EarlyExit, by exit layer and by skipped layers, with trees of every shape.
const std::vector<Variant> kEarlyExitVariants = {
    {.speculative = "early_exit,exit_layer=2", .batch = 8},
    {.speculative = "early_exit,exit_layer=5,max_draft_len=7,assistant_confidence_threshold=0.01",
     .page_size = 1},
    {.speculative = "early_exit,exit_layer=1,expansion=[2,2,1,1]", .page_size = 64, .batch = 8},
    {.speculative = "early_exit,exit_layer=3,tree=dynamic", .batch = 8, .prefill_chunk = 7},
    {.speculative = "early_exit,skip_attention_layers=[1,3],skip_mlp_layers=[4]", .page_size = 1, .batch = 8},
    {.speculative = "early_exit,skip_attention_layers=[5],tree=dynamic"},
    {.speculative = "early_exit,exit_layer=4,expansion=[2,2,1]", .page_size = 1},
};

void check(const Workload& workload, AcceptanceRule acceptance) {
  size_t next = 0;
  for (const Numerics& numerics : all_numerics()) {
    // The scalar table is slow: fewer and shorter runs.
    const bool is_slow = numerics.kernels == "reference";
    Workload share = workload;
    if (is_slow) {
      share.prompts = {workload.prompts[3], workload.prompts[5]};
      share.max_tokens = 10;
    }
    const auto plain = run_variant(numerics, {.acceptance = acceptance}, share);
    for (int i = 0; i < (is_slow ? 2 : 3); ++i, ++next) {
      Variant variant = kVariants[next % kVariants.size()];
      variant.acceptance = acceptance;
      expect_same(plain, run_variant(numerics, variant, share),
                  describe(numerics) + ", " + describe(variant));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Lossless, GreedyOutputIsIdentical) {
  check({.prompts = mixed_prompts(8), .max_tokens = 24}, AcceptanceRule::kCoupled);
}

// Every block type of files, on random models whose rows are whole blocks.
TEST(Lossless, EveryTypeOfFiles) {
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    if (block_elements(dtype) == 1) continue;
    Workload workload = token_workload(0, 16);
    workload.target = shape_path("llama-68m", dtype, 512).string();
    const Numerics numerics{.kernels = ""};
    const auto plain = run_variant(numerics, {}, workload);
    for (const Variant& variant : {Variant{.speculative = "ngram,max_draft_len=5,tree=dynamic", .batch = 3},
                                   Variant{.speculative = "early_exit,exit_layer=1,expansion=[2,2,1]"}}) {
      expect_same(plain, run_variant(numerics, variant, workload),
                  workload.target + ", " + describe(variant));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Lossless, SampledOutputIsIdenticalForTheSameSeed) {
  SamplingParams sampling;
  sampling.temperature = 0.7;
  sampling.top_p = 0.9;
  sampling.seed = 42;
  check({.prompts = mixed_prompts(8), .max_tokens = 24, .sampling = sampling}, AcceptanceRule::kCoupled);
}

TEST(Lossless, PenaltiesAreEvaluatedPerPath) {
  SamplingParams sampling;
  sampling.temperature = 0.8;
  sampling.repetition_penalty = 1.2;
  sampling.presence_penalty = 0.3;
  sampling.frequency_penalty = 0.2;
  sampling.seed = 7;
  const Workload workload{.prompts = mixed_prompts(8), .max_tokens = 32, .sampling = sampling};
  const Numerics numerics{.kernels = ""};
  const auto plain = run_variant(numerics, {}, workload);
  for (const Variant& variant : kVariants) {
    expect_same(plain, run_variant(numerics, variant, workload), describe(variant));
  }
}

TEST(Lossless, GreedyRejectionIsIdenticalToo) {
  const Workload workload{.prompts = mixed_prompts(8), .max_tokens = 32};
  const Numerics numerics{.kernels = ""};
  const auto plain = run_variant(numerics, {}, workload);
  for (Variant variant : kVariants) {
    variant.acceptance = AcceptanceRule::kRejection;
    expect_same(plain, run_variant(numerics, variant, workload), describe(variant));
  }
}

// Every table and every type runs with some variant, greedy and sampled in turn, and every variant with the
// defaults. models/layer_subset_test.cc covers all tables with all types.
TEST(Lossless, EarlyExitIsIdentical) {
  const Workload greedy{.prompts = mixed_prompts(8), .max_tokens = 24};
  Workload sampled = greedy;
  sampled.sampling.temperature = 0.7;
  sampled.sampling.top_p = 0.9;
  sampled.sampling.presence_penalty = 0.3;
  sampled.sampling.seed = 11;
  const std::vector<Numerics> all = all_numerics();
  for (size_t i = 0; i < all.size(); i += 3) {
    const Numerics& numerics = all[i];
    if (numerics.kernels == "reference") continue;
    const Workload& workload = i % 2 == 0 ? greedy : sampled;
    const Variant& variant = kEarlyExitVariants[i % kEarlyExitVariants.size()];
    expect_same(run_variant(numerics, {.batch = 8}, workload), run_variant(numerics, variant, workload),
                describe(numerics) + ", " + describe(variant));
  }
  for (const Workload& workload : {greedy, sampled}) {
    const auto plain = run_variant({.kernels = ""}, {.batch = 8}, workload);
    for (const Variant& variant : kEarlyExitVariants)
      expect_same(plain, run_variant({.kernels = ""}, variant, workload), describe(variant));
  }
}

TEST(Lossless, GreedyEarlyExitRejectionIsIdenticalToo) {
  const Workload workload{.prompts = mixed_prompts(8), .max_tokens = 24};
  const auto plain = run_variant({.kernels = ""}, {.batch = 8}, workload);
  for (Variant variant : kEarlyExitVariants) {
    variant.acceptance = AcceptanceRule::kRejection;
    expect_same(plain, run_variant({.kernels = ""}, variant, workload), describe(variant));
  }
}

// An emulator of another processor runs all of its tables on the small model in minutes (tools/check_arm.sh).
// As its own draft model it is right nearly always.
const std::vector<Variant> kSmallVariants = {
    {.speculative = "ngram,max_draft_len=5,tree=dynamic", .page_size = 1, .batch = 3},
    {.speculative = "suffix,max_draft_len=8", .page_size = 16, .batch = 8, .prefill_chunk = 7},
    {.speculative = "lookahead", .page_size = 64, .batch = 8},
    {.speculative = "draft_target,max_draft_len=5", .page_size = 1, .batch = 8, .head = small_target()},
    {.speculative = "draft_target,max_draft_len=4,tree=dynamic", .batch = 1, .head = small_target()},
    {.speculative = "early_exit,exit_layer=1,expansion=[2,2,1]", .page_size = 16, .batch = 8},
    {.speculative = "suffix,max_draft_len=4", .page_size = 16, .batch = 3, .preempt_every = 3},
};

TEST(Lossless, ASmallModelOnEveryTable) {
  for (const double temperature : {0.0, 0.8}) {
    const Workload workload = token_workload(temperature, 16);
    std::vector<Numerics> all = all_numerics();
    std::ranges::copy(emulated_numerics(), std::back_inserter(all));
    for (const Numerics& numerics : all) {
      const auto plain = run_variant(numerics, {.batch = 8}, workload);
      int64_t accepted = 0;
      for (Variant variant : kSmallVariants) {
        if (temperature == 0.0 && variant.batch == 8) variant.acceptance = AcceptanceRule::kRejection;
        const auto drafting = run_variant(numerics, variant, workload);
        expect_same(plain, drafting, describe(numerics) + ", " + describe(variant));
        if (::testing::Test::HasFatalFailure()) return;
        for (const Completion& completion : drafting) accepted += completion.speculation.accepted;
      }
      EXPECT_GT(accepted, 100) << describe(numerics);
    }
  }
}

// A test of the suite itself: it must notice other weights, another seed and another draft length.
using Texts = std::vector<std::vector<TokenId>>;

// Predictions of answers: right, another prompt's, without their beginnings, with every ninth token changed,
// longer than the answer, and wrong after every few tokens that are right.
std::vector<Texts> predictions_of(const std::vector<Completion>& plain) {
  std::vector<Texts> kinds(6);
  for (size_t i = 0; i < plain.size(); ++i) {
    const std::vector<TokenId>& answer = plain[i].tokens;
    const auto shift = static_cast<ptrdiff_t>(std::min<size_t>(5, answer.size()));
    std::vector<TokenId> edited = answer, longer = answer, luring;
    for (size_t place = 4; place < edited.size(); place += 9) edited[place] = 7;
    longer.insert(longer.end(), answer.begin(), answer.end());
    for (size_t place = 0; place + 5 <= answer.size(); ++place) {
      const auto from = answer.begin() + static_cast<ptrdiff_t>(place);
      luring.insert(luring.end(), from, from + 5);
      luring.push_back(7);
    }
    kinds[0].push_back(answer);
    kinds[1].push_back(plain[(i + 1) % plain.size()].tokens);
    kinds[2].emplace_back(answer.begin() + shift, answer.end());
    kinds[3].push_back(std::move(edited));
    kinds[4].push_back(std::move(longer));
    kinds[5].push_back(std::move(luring));
  }
  return kinds;
}

TEST(Lossless, APredictionChangesNoText) {
  const std::vector<Variant> variants = {{.speculative = "ngram,max_draft_len=4", .batch = 3},
                                         {.speculative = "suffix,tree=dynamic,policy=auto", .batch = 8},
                                         {.speculative = "draft_target,max_draft_len=4"},
                                         {.speculative = "lookahead", .page_size = 1, .batch = 8},
                                         {.speculative = "early_exit,exit_layer=2", .batch = 3},
                                         {.speculative = "combine=[suffix,draft_target],policy=auto"}};
  const Numerics numerics{.kernels = ""};
  for (const double temperature : {0.0, 0.8}) {
    Workload workload{.prompts = mixed_prompts(6), .max_tokens = 40};
    workload.sampling.temperature = temperature;
    const auto plain = run_variant(numerics, {}, workload);
    int64_t steps = 0, steps_with_right_ones = 0;
    for (const Completion& completion : plain) steps += completion.speculation.steps;
    size_t next = 0;
    for (const Texts& predictions : predictions_of(plain)) {
      workload.predictions = predictions;
      const Variant& variant = variants[next % variants.size()];
      const auto other = run_variant(numerics, variant, workload);
      expect_same(plain, other, describe(variant) + ", prediction " + std::to_string(next));
      if (::testing::Test::HasFatalFailure()) return;
      for (const Completion& completion : other)
        steps_with_right_ones += next == 0 ? completion.speculation.steps : 0;
      ++next;
    }
    EXPECT_LT(steps_with_right_ones * 5, steps);
  }
}

TEST(Lossless, TheComparisonSeesADifference) {
  const Workload workload{.prompts = mixed_prompts(4), .max_tokens = 32};
  const auto one = run_variant({.kernels = "", .weights = WeightPrecision::kBF16}, {}, workload);
  const auto other = run_variant({.kernels = "", .weights = WeightPrecision::kQ4}, {}, workload);
  bool differs = false;
  for (size_t i = 0; i < one.size(); ++i) differs |= one[i].tokens != other[i].tokens;
  EXPECT_TRUE(differs);
}

TEST(Lossless, DraftedTokensAreAccepted) {
  const Workload workload{.prompts = mixed_prompts(12), .max_tokens = 64};
  for (const char* drafter : {"draft_target", "early_exit,exit_layer=5"}) {
    const auto completions = run_variant({.kernels = ""}, {.speculative = drafter}, workload);
    int64_t drafted = 0;
    int64_t accepted = 0;
    for (const Completion& completion : completions) {
      drafted += completion.speculation.drafted;
      accepted += completion.speculation.accepted;
    }
    EXPECT_GT(accepted, drafted / 3) << drafter;
  }
}

}  // namespace
}  // namespace outrider
