// SPDX-License-Identifier: Apache-2.0
// The slow suite: 200 prompts x 128 tokens for every kernel table and weight type, greedy and sampled. Every
// prompt runs with every other drafter, and every drafter with every tree, be it greedy or sampled; stops,
// children, warps, penalties, page sizes and batches take turns.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/lossless/lossless.h"

namespace outrider {
namespace {

constexpr int kPrompts = 200;
constexpr int kReferencePrompts = 25;  // scalar tables and devices take minutes where others take seconds
constexpr int kGroup = 25;             // prompts that share one engine

class LosslessSlow : public ::testing::TestWithParam<Numerics> {};

SamplingParams sampling_of(double temperature, size_t group) {
  SamplingParams sampling = warped(penalties()[group % penalties().size()], warps()[group % warps().size()]);
  sampling.temperature = temperature;
  sampling.seed = 1000 + 100 * group;
  return sampling;
}

// The variant of a drafter at its turn number `turn`.
Variant variant_of(size_t drafter, size_t visit) {
  constexpr std::array kPages = {1, 16, 64};
  const size_t turn = visit * drafters().size() + drafter;
  return {.speculative = drafters()[drafter] + "," + shapes()[(drafter + visit) % shapes().size()] + "," +
                         stops()[turn % stops().size()] + "," +
                         children_choices()[turn / 5 % children_choices().size()],
          .page_size = kPages[turn % 3],
          .batch = turn % 4 == 0 ? 1 : 8,
          .prefill_chunk = 1 + static_cast<int>(turn * 37 % 300)};
}

void check_all(const Numerics& numerics, std::array<double, 2> temperatures, size_t first_visit) {
  const std::vector<std::string> prompts = mixed_prompts(kPrompts);
  const bool is_slow = numerics.kernels == "reference" || numerics.device == ComputeDevice::kEmulated;
  const size_t count = is_slow ? kReferencePrompts : kPrompts;
  for (size_t group = 0; group * kGroup < count; ++group) {
    const auto first = prompts.begin() + static_cast<ptrdiff_t>(group * kGroup);
    const Workload workload{.prompts = {first, first + kGroup},
                            .max_tokens = 128,
                            .sampling = sampling_of(temperatures[group / 4], group)};
    const auto plain = run_variant(numerics, {.batch = 8}, workload);
    expect_same(plain, run_variant(numerics, {.page_size = 1, .batch = 3, .prefill_chunk = 33}, workload),
                describe(numerics) + ", plain");
    for (size_t drafter = group % 2; drafter < drafters().size(); drafter += 2) {
      const Variant variant = variant_of(drafter, first_visit + group / 2);
      expect_same(plain, run_variant(numerics, variant, workload),
                  describe(numerics) + ", " + describe(variant));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST_P(LosslessSlow, Greedy) { check_all(GetParam(), {0.0, 0.0}, 0); }

TEST_P(LosslessSlow, Sampled) { check_all(GetParam(), {0.7, 1.0}, 4); }

std::string test_name(const ::testing::TestParamInfo<Numerics>& info) {
  std::string name = describe(info.param);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, LosslessSlow, ::testing::ValuesIn(all_numerics()), test_name);
INSTANTIATE_TEST_SUITE_P(Emulated, LosslessSlow, ::testing::ValuesIn(emulated_numerics()), test_name);

}  // namespace
}  // namespace outrider
