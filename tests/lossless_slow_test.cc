// SPDX-License-Identifier: Apache-2.0
// The slow suite: 200 prompts x 128 tokens for every kernel table and weight type, greedy and sampled; every
// prompt runs with every drafter, and draft lengths 1 to 16, page sizes and batches take turns.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "lossless.h"

namespace outrider {
namespace {

constexpr int kPrompts = 200;
constexpr int kReferencePrompts = 25;  // the scalar table needs minutes for what the others do in seconds
constexpr int kGroup = 25;             // prompts that share one engine

class LosslessSlow : public ::testing::TestWithParam<Numerics> {};

void check_all(const Numerics& numerics, const SamplingParams& sampling) {
  constexpr std::array kPages = {1, 16, 64};
  const std::vector<std::string> prompts = mixed_prompts(kPrompts);
  const int count = numerics.kernels == "reference" ? kReferencePrompts : kPrompts;
  int turn = 0;
  for (int begin = 0; begin < count; begin += kGroup) {
    Workload workload{.prompts = {prompts.begin() + begin, prompts.begin() + begin + kGroup},
                      .max_tokens = 128,
                      .sampling = sampling};
    workload.sampling.seed += static_cast<uint64_t>(begin);
    const auto plain = run_variant(numerics, {.batch = 8}, workload);
    for (const char* drafter : {"None", "NGram", "DraftTarget", "Suffix", "Lookahead", "EarlyExit"}) {
      const Variant variant{.drafter = drafter,
                            .draft_len = 1 + turn * 5 % 16,
                            .page_size = kPages[static_cast<size_t>(turn % 3)],
                            .batch = turn % 4 == 0 ? 1 : 8,
                            .prefill_chunk = 1 + turn * 37 % 300,
                            .tree = turn % 2 == 0 ? TreeKind::kChain : TreeKind::kDynamic};
      ++turn;
      expect_same(plain, run_variant(numerics, variant, workload),
                  describe(numerics) + ", " + describe(variant));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST_P(LosslessSlow, Greedy) { check_all(GetParam(), {}); }

TEST_P(LosslessSlow, Sampled) {
  SamplingParams sampling;
  sampling.temperature = 0.7;
  sampling.top_p = 0.9;
  sampling.seed = 1000;
  check_all(GetParam(), sampling);
}

INSTANTIATE_TEST_SUITE_P(All, LosslessSlow, ::testing::ValuesIn(all_numerics()), [](const auto& info) {
  std::string name = describe(info.param);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

}  // namespace
}  // namespace outrider
