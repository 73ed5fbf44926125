// SPDX-License-Identifier: Apache-2.0
#include "engine/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "open/parts.h"

namespace outrider::agreement_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kModel = OUTRIDER_SOURCE_DIR "/tests/data/models/llama";
constexpr TokenId kVocab = 288;

using Script = std::function<Status(TokenTree&)>;

class ScriptedDrafter final : public Drafter {
 public:
  explicit ScriptedDrafter(Script script) : script_(std::move(script)) {}
  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest>, std::span<TokenTree> trees) override {
    return script_(trees[0]);
  }

 private:
  DrafterTraits traits_{.name = "Scripted"};
  Script script_;
};

EngineOptions options_with(Script script) {
  EngineOptions options;
  options.model = kModel;
  options.threads = 1;
  options.speculation.decoding_type = Method::kUserProvided;
  options.user_drafter = std::make_shared<ScriptedDrafter>(std::move(script));
  return options;
}

Result<Agreement> measure(const EngineOptions& options, const std::vector<GivenText>& texts) {
  OUTRIDER_TRY(const auto parts, open_parts(options));
  return measure_agreement(*parts, texts);
}

Agreement measured(const EngineOptions& options, const std::vector<GivenText>& texts) {
  const Result<Agreement> agreement = measure(options, texts);
  EXPECT_TRUE(agreement.ok()) << agreement.error().message;
  return agreement.ok() ? *agreement : Agreement{};
}

// The target's distribution of the token after `tokens`, by scoring every token.
std::vector<double> target_distribution(std::vector<TokenId> tokens) {
  static const auto kEngine = [] {
    EngineOptions options;
    options.model = kModel;
    return Engine::open(options);
  }();
  std::vector<double> distribution;
  tokens.push_back(0);
  for (TokenId token = 0; token < kVocab; ++token) {
    tokens.back() = token;
    distribution.push_back(std::exp((*kEngine)->score(tokens)->back()));
  }
  return distribution;
}

std::vector<TokenId> random_tokens(int count) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back((i * i * 7 + i * 31 + 5) % 280);
  return tokens;
}

Status draft_uniformly(TokenTree& tree) {
  Distribution distribution;
  for (TokenId token = 0; token < kVocab; ++token) {
    distribution.tokens.push_back(token);
    distribution.probabilities.push_back(1.0 / kVocab);
  }
  tree.set_distribution(0, distribution);
  tree.add(0, 0, 1.0 / kVocab);
  return {};
}

TEST(Agreement, OfAModelWithItselfIsWhole) {
  EngineOptions options;
  options.model = kModel;
  options.speculation.decoding_type = Method::kDraftTarget;
  options.speculation.speculative_model = kModel;
  const Agreement agreement = measured(options, {{random_tokens(60), 20}, {random_tokens(30), 1}});
  EXPECT_EQ(agreement.places, 40 + 29);
  EXPECT_TRUE(agreement.has_distributions);
  EXPECT_NEAR(agreement.divergence, 0.0, 1e-12);
  EXPECT_NEAR(agreement.variation, 0.0, 1e-12);
  EXPECT_NEAR(agreement.early_variation, 0.0, 1e-12);
  EXPECT_NEAR(agreement.late_variation, 0.0, 1e-12);
  EXPECT_THAT(agreement.coverage, Each(1.0));
}

// The model has two layers: the drafter runs only the first, or all but one part of the second.
TEST(Agreement, OfADrafterThatRunsAPartOfTheTarget) {
  EngineOptions options;
  options.model = kModel;
  options.speculation.decoding_type = Method::kEarlyExit;
  for (const bool skips : {false, true}) {
    if (skips) options.speculation.early_exit.skip_mlp_layers = {1};
    const Agreement agreement = measured(options, {{random_tokens(60), 20}});
    EXPECT_EQ(agreement.places, 40);
    EXPECT_TRUE(agreement.has_distributions);
    EXPECT_GT(agreement.variation, 0.001);
    EXPECT_LT(agreement.variation, 0.9);
    EXPECT_GT(agreement.coverage.back(), 0.1);
  }
}

TEST(Agreement, OfSeveralDraftersIsThatOfTheModelAmongThem) {
  EngineOptions options;
  options.model = kModel;
  options.speculation.speculative_model = kModel;
  options.speculation.decoding_type = Method::kCombined;
  for (const auto& combine :
       {std::vector<Method>{Method::kNGram, Method::kDraftTarget}, {Method::kDraftTarget, Method::kNGram}}) {
    options.speculation.combine = combine;
    std::vector<TokenId> tokens(40, 7);  // NGram finds a match everywhere
    const Agreement agreement = measured(options, {{tokens, 20}});
    EXPECT_TRUE(agreement.has_distributions);
    EXPECT_NEAR(agreement.variation, 0.0, 1e-12);
    EXPECT_THAT(agreement.coverage, Each(1.0));
  }
}

TEST(Agreement, WithAUniformDistributionIsWhatTheTargetsOwnDistributionSays) {
  constexpr int kPrompt = 4, kSize = 9;  // places after 4, 5, 6, 7 and 8 tokens; the middle is at 6
  const std::vector<TokenId> tokens = random_tokens(kSize);
  double divergence = 0.0, early = 0.0, late = 0.0;
  std::array<double, Agreement::kRanks> coverage{};
  for (int known = kPrompt; known < kSize; ++known) {
    const std::vector<double> distribution = target_distribution({tokens.begin(), tokens.begin() + known});
    double common = 0.0;
    for (const double p : distribution) {
      divergence += p * std::log(p * kVocab);
      common += std::min(p, 1.0 / kVocab);
    }
    (known < 6 ? early : late) += 1.0 - common;
    const auto likeliest = std::ranges::max_element(distribution) - distribution.begin();
    for (size_t k = 0; k < coverage.size(); ++k)
      coverage[k] += static_cast<size_t>(likeliest) <= k ? 0.2 : 0.0;
  }
  const Agreement agreement = measured(options_with(draft_uniformly), {{tokens, kPrompt}});
  EXPECT_EQ(agreement.places, 5);
  EXPECT_NEAR(agreement.divergence, divergence / 5, 1e-6);
  EXPECT_NEAR(agreement.variation, (early + late) / 5, 1e-6);
  EXPECT_NEAR(agreement.early_variation, early / 2, 1e-6);
  EXPECT_NEAR(agreement.late_variation, late / 3, 1e-6);
  EXPECT_THAT(agreement.coverage, testing::Pointwise(testing::DoubleNear(1e-9), coverage));
  EXPECT_GT(agreement.divergence, 0.01);  // the target's distribution is not uniform
}

TEST(Agreement, CoverageCountsRanks) {
  const std::vector<TokenId> tokens = random_tokens(8);
  const std::vector<double> distribution = target_distribution({tokens.begin(), tokens.begin() + 7});
  const auto likeliest = static_cast<TokenId>(std::ranges::max_element(distribution) - distribution.begin());
  const Agreement agreement = measured(options_with([&](TokenTree& tree) -> Status {
                                         Distribution draft;
                                         for (TokenId token = 0; token < kVocab; ++token) {
                                           draft.tokens.push_back(token);
                                           draft.probabilities.push_back(0.1 / (kVocab - 3));
                                         }
                                         // Third, after its neighbours.
                                         const auto place = static_cast<size_t>(likeliest);
                                         draft.probabilities[(place + 1) % kVocab] = 0.4;
                                         draft.probabilities[(place + 2) % kVocab] = 0.3;
                                         draft.probabilities[place] = 0.2;
                                         tree.set_distribution(0, draft);
                                         return {};
                                       }),
                                       {{tokens, 7}});
  EXPECT_EQ(agreement.places, 1);
  EXPECT_THAT(agreement.coverage, ElementsAre(0.0, 0.0, 1.0, 1.0, 1.0));
  const auto mass = [&](int after) { return distribution[static_cast<size_t>(likeliest + after) % kVocab]; };
  EXPECT_NEAR(agreement.sampled_coverage[0], mass(1), 1e-9);
  EXPECT_NEAR(agreement.sampled_coverage[1], mass(1) + mass(2), 1e-9);
  EXPECT_NEAR(agreement.sampled_coverage[2], mass(1) + mass(2) + mass(0), 1e-9);
}

TEST(Agreement, WithoutDistributionsOnlyTheFirstChoiceCounts) {
  const std::vector<TokenId> tokens = random_tokens(12);
  std::vector<TokenId> likeliest;
  for (int known = 8; known < 12; ++known) {
    const std::vector<double> distribution = target_distribution({tokens.begin(), tokens.begin() + known});
    likeliest.push_back(static_cast<TokenId>(std::ranges::max_element(distribution) - distribution.begin()));
  }
  size_t place = 0;  // right, wrong, nothing, failing
  const Agreement agreement = measured(options_with([&](TokenTree& tree) -> Status {
                                         const size_t turn = place++;
                                         if (turn == 2) return {};
                                         tree.add(0, likeliest[turn] + (turn == 1 ? 1 : 0));
                                         if (turn == 3) return input_error("failed");
                                         return {};
                                       }),
                                       {{tokens, 8}});
  EXPECT_EQ(place, 4u);
  EXPECT_EQ(agreement.places, 4);
  EXPECT_FALSE(agreement.has_distributions);
  EXPECT_EQ(agreement.coverage[0], 0.25);
}

TEST(Agreement, NeedsTextsWithinTheContext) {
  EngineOptions options = options_with(draft_uniformly);
  options.context = 32;
  EXPECT_TRUE(measure(options, {{random_tokens(32), 31}}).ok());
  const auto refused = measure(options, {{random_tokens(33), 31}});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("--ctx"));
  EXPECT_EQ(measured(options, {}).places, 0);
}

}  // namespace
}  // namespace outrider::agreement_test
