// SPDX-License-Identifier: Apache-2.0
// The output of propose() and verify() has the target's distribution, as exact enumeration shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "speculation/acceptance/exact_distribution_fixture.h"

namespace outrider::lossless_test {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
constexpr AcceptanceRule kRules[] = {AcceptanceRule::kRejection, AcceptanceRule::kBlock,
                                     AcceptanceRule::kCoupled};
constexpr Drafting kDraftings[] = {Drafting::kSampled, Drafting::kLikeliest, Drafting::kFixed,
                                   Drafting::kAlternating};

SamplingParams at_temperature(double temperature) {
  SamplingParams params;
  params.temperature = temperature;
  return params;
}

// The draft's logits are the target's mixed with another model's, so that they agree in part.
Scenario scenario_of(int vocabulary, uint64_t seed, const SamplingParams& params) {
  Scenario scenario;
  scenario.target = {vocabulary, seed, params, 0, 0.0};
  scenario.draft = {vocabulary, seed, params, seed + 1000, 0.5};
  return scenario;
}

class Losslessness : public ExactDistributionTest {
 protected:
  void expect_lossless_in_all_modes(Scenario scenario) {
    for (const AcceptanceRule rule : kRules) {
      for (const Drafting drafting : kDraftings) {
        scenario.rule = rule;
        scenario.drafting = drafting;
        ASSERT_NO_FATAL_FAILURE(expect_lossless(scenario));
      }
    }
  }
};

struct Chain {
  int vocabulary;
  int drafted;
  int length;
};

TEST_F(Losslessness, Chains) {
  for (const Chain& chain : {Chain{2, 1, 2},
                             {2, 2, 3},
                             {2, 3, 4},
                             {2, 4, 5},
                             {3, 1, 3},
                             {3, 2, 3},
                             {3, 3, 3},
                             {4, 1, 2},
                             {5, 2, 2},
                             {8, 1, 2}}) {
    const std::vector<int> widths(static_cast<size_t>(chain.drafted), 1);
    for (uint64_t seed = 0; seed < 6; ++seed) {
      Scenario scenario = scenario_of(chain.vocabulary, seed, at_temperature(seed % 2 == 0 ? 1.0 : 0.5));
      scenario.shape = uniform_shape(widths);
      scenario.length = chain.length;
      ASSERT_NO_FATAL_FAILURE(expect_lossless_in_all_modes(scenario));
    }
  }
}

TEST_F(Losslessness, LongChains) {
  for (const Chain& chain : {Chain{5, 2, 3}, {3, 3, 4}, {2, 4, 6}}) {
    const std::vector<int> widths(static_cast<size_t>(chain.drafted), 1);
    Scenario scenario = scenario_of(chain.vocabulary, 31, at_temperature(1.0));
    scenario.shape = uniform_shape(widths);
    scenario.length = chain.length;
    ASSERT_NO_FATAL_FAILURE(expect_lossless_in_all_modes(scenario));
  }
}

TEST_F(Losslessness, AllTreesOfUpToFourDraftedNodes) {
  for (int drafted = 1; drafted <= 4; ++drafted) {
    for (const TreeShape& shape : all_shapes(drafted)) {
      for (const int vocabulary : {2, 3}) {
        Scenario scenario = scenario_of(vocabulary, static_cast<uint64_t>(drafted), at_temperature(1.0));
        scenario.shape = shape;
        scenario.length = 3;
        ASSERT_NO_FATAL_FAILURE(expect_lossless_in_all_modes(scenario));
      }
    }
  }
}

TEST_F(Losslessness, WideTrees) {
  const std::vector<std::vector<int>> widths = {{2}, {3}, {4}, {8}, {2, 2}, {3, 2}};
  for (const std::vector<int>& by_depth : widths) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      SamplingParams params = at_temperature(1.5);
      if (by_depth.size() > 1) params.top_k = 3;
      Scenario scenario = scenario_of(by_depth[0] == 8 ? 4 : 5, seed, params);
      scenario.shape = uniform_shape(by_depth);
      scenario.length = by_depth.size() > 1 ? 2 : 1;
      ASSERT_NO_FATAL_FAILURE(expect_lossless_in_all_modes(scenario));
    }
  }
}

std::vector<SamplingParams> warps() {
  std::vector<SamplingParams> all;
  for (const double temperature : {0.0, 1e-8, 1e-4, 0.5, 1.0, 2.0})
    all.push_back(at_temperature(temperature));
  const auto add = [&](auto change) {
    all.push_back(at_temperature(1.0));
    change(all.back());
  };
  add([](SamplingParams& p) { p.top_k = 2; });
  add([](SamplingParams& p) { p.top_p = 0.8; });
  add([](SamplingParams& p) { p.min_p = 0.3; });
  add([](SamplingParams& p) { p.repetition_penalty = 1.7; });
  add([](SamplingParams& p) { p.presence_penalty = 1.5; });
  add([](SamplingParams& p) { p.frequency_penalty = -0.8; });
  add([](SamplingParams& p) { p.logit_bias = {{0, 1.0f}, {1, kForbidden}}; });
  add([](SamplingParams& p) {
    p.top_k = 3;
    p.top_p = 0.9;
    p.min_p = 0.05;
    p.frequency_penalty = 0.5;
    p.logit_bias = {{2, kForbidden}};
  });
  return all;
}

TEST_F(Losslessness, WarpedAndMaskedDistributions) {
  const std::vector<std::vector<int>> widths = {{1, 1}, {2, 1}};
  for (const SamplingParams& target : warps()) {
    for (const SamplingParams& draft : warps()) {
      for (const std::vector<int>& by_depth : widths) {
        Scenario scenario = scenario_of(3, 77, target);
        scenario.draft.params = draft;
        scenario.shape = uniform_shape(by_depth);
        scenario.length = 2;
        ASSERT_NO_FATAL_FAILURE(expect_lossless_in_all_modes(scenario));
      }
    }
  }
}

TEST_F(Losslessness, LargerVocabulariesUnderTopK) {
  for (const int vocabulary : {5, 6, 7, 8}) {
    SamplingParams params = at_temperature(1.0);
    params.top_k = 3;
    Scenario scenario = scenario_of(vocabulary, static_cast<uint64_t>(vocabulary), params);
    const int widths[] = {2, 1};
    scenario.shape = uniform_shape(widths);
    scenario.length = 3;
    ASSERT_NO_FATAL_FAILURE(expect_lossless_in_all_modes(scenario));
  }
}

TEST_F(Losslessness, EqualDistributions) {
  for (const int vocabulary : {2, 3, 4}) {
    for (const TreeShape& shape : all_shapes(3)) {
      Scenario scenario = scenario_of(vocabulary, 5, at_temperature(1.0));
      scenario.draft = scenario.target;
      scenario.shape = shape;
      scenario.length = 2;
      ASSERT_NO_FATAL_FAILURE(expect_lossless_in_all_modes(scenario));
    }
  }
}

TEST_F(Losslessness, DisjointSupports) {
  for (const TreeShape& shape : all_shapes(3)) {
    Scenario scenario = scenario_of(4, 9, at_temperature(1.0));
    scenario.target.params.logit_bias = {{0, kForbidden}, {2, kForbidden}};
    scenario.draft.params.logit_bias = {{1, kForbidden}, {3, kForbidden}};
    scenario.shape = shape;
    scenario.length = 3;
    ASSERT_NO_FATAL_FAILURE(expect_lossless_in_all_modes(scenario));
  }
}

TEST_F(Losslessness, DistributionsThatDifferByRounding) {
  for (const double share : {1e-15, 1e-12, 1e-8}) {
    Scenario scenario = scenario_of(3, 21, at_temperature(1.0));
    scenario.draft.other_share = share;
    const int widths[] = {3, 2};
    scenario.shape = uniform_shape(widths);
    scenario.length = 2;
    ASSERT_NO_FATAL_FAILURE(expect_lossless_in_all_modes(scenario));
  }
}

TEST_F(Losslessness, BrokenDraftDistributions) {
  const std::vector<std::function<void(Distribution&)>> corruptions = {
      [](Distribution& distribution) { distribution = {}; },
      [](Distribution& distribution) { distribution.probabilities.assign(distribution.tokens.size(), 0.0); },
      [](Distribution& distribution) {
        distribution.probabilities[0] = std::numeric_limits<double>::quiet_NaN();
      },
      [](Distribution& distribution) {
        distribution.probabilities.back() = std::numeric_limits<double>::infinity();
      },
      [](Distribution& distribution) { distribution.probabilities[0] *= -1.0; },
      [](Distribution& distribution) { distribution.probabilities[0] *= 2.0; },
      [](Distribution& distribution) { distribution.probabilities.pop_back(); },
      [](Distribution& distribution) {
        std::reverse(distribution.tokens.begin(), distribution.tokens.end());
      },
      [](Distribution& distribution) {
        distribution = {{99}, {1.0}};
      },  // does not hold the drafted tokens
  };
  for (const auto& corrupt : corruptions) {
    for (const TreeShape& shape : all_shapes(3)) {
      Scenario scenario = scenario_of(3, 13, at_temperature(1.0));
      scenario.corrupt = corrupt;
      scenario.shape = shape;
      scenario.length = 3;
      ASSERT_NO_FATAL_FAILURE(expect_lossless_in_all_modes(scenario));
    }
  }
}

// A drafter that states another distribution than it draws from biases the output; the enumeration must find
// it.
TEST(LosslessnessControl, AFalseDistributionIsNoticed) {
  Scenario scenario = scenario_of(3, 13, at_temperature(1.0));
  scenario.corrupt = [](Distribution& distribution) {
    std::reverse(distribution.probabilities.begin(), distribution.probabilities.end());
  };
  const int widths[] = {1};
  scenario.shape = uniform_shape(widths);
  EXPECT_GT(compare_with_target(scenario).total_variation, 1e-3);
}

}  // namespace
}  // namespace outrider::lossless_test
