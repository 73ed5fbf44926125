// SPDX-License-Identifier: Apache-2.0
// Ways to draft and verify one token that look right, on two distributions over five tokens. The exact ones
// emit the target's distribution p; for some biased ones the emitted distribution is known from rational
// arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "speculation/acceptance/exact_distribution_test.h"

namespace outrider {
namespace {

using Probabilities = std::array<double, 5>;

constexpr Probabilities kTarget = {.35, .10, .15, .25, .15};
constexpr Probabilities kDraft = {.15, .40, .25, .12, .08};
constexpr Probabilities kOtherDraft = {.05, .15, .30, .10, .40};
constexpr double kMin = 0.14;  // the threshold of the schemes that drop unlikely tokens

Distribution distribution(const Probabilities& p) { return {{0, 1, 2, 3, 4}, {p.begin(), p.end()}}; }

Probabilities normalised(Probabilities distribution) {
  const double sum = std::accumulate(distribution.begin(), distribution.end(), 0.0);
  for (double& mass : distribution) mass /= sum;
  return distribution;
}

double& at(Probabilities& distribution, TokenId token) { return distribution[static_cast<size_t>(token)]; }

TokenId draw(const Probabilities& distribution, Randomness& randomness, RandomPurpose purpose,
             uint64_t number) {
  return static_cast<TokenId>(randomness.categorical(distribution, 0, purpose, number));
}

std::vector<TokenId> drawn(const Probabilities& distribution, int count, ChildrenKind kind,
                           Randomness& randomness, uint64_t first = 0) {
  Probabilities remaining = distribution;
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back(draw(remaining, randomness, RandomPurpose::kDraft, first + static_cast<uint64_t>(i)));
    if (kind == ChildrenKind::kSampled) at(remaining, tokens.back()) = 0.0;
  }
  return tokens;
}

std::vector<TokenId> top(const Probabilities& distribution, size_t count) {
  std::vector<TokenId> tokens(distribution.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::stable_sort(tokens.begin(), tokens.end(), [&](TokenId a, TokenId b) {
    return distribution[static_cast<size_t>(a)] > distribution[static_cast<size_t>(b)];
  });
  tokens.resize(count);
  return tokens;
}

// A token that is accepted with probability min(1, p / q); its rejection leaves the residual max(0, p - q).
struct Proposed {
  TokenId token;
  Probabilities q;
};

TokenId ratio_rule(const std::vector<Proposed>& proposals, Randomness& randomness) {
  Probabilities p = kTarget;
  uint64_t number = 0;
  for (Proposed one : proposals) {
    if (randomness.bernoulli(at(p, one.token) / at(one.q, one.token), 0, number++)) return one.token;
    for (size_t i = 0; i < p.size(); ++i) p[i] = std::max(0.0, p[i] - one.q[i]);
    p = normalised(p);
  }
  return draw(p, randomness, RandomPurpose::kResidual, 0);
}

// Runs the real verifier on a tree that `grow` makes.
TokenId production(const std::function<void(TokenTree&)>& grow, Randomness& randomness) {
  TokenTree tree;
  grow(tree);
  const Distribution target = distribution(kTarget);
  Verdict verdict;
  verify({.tree = &tree,
          .target_distribution = [&](int node) -> const Distribution& {
            static const Distribution kCertain{{0}, {1.0}};
            return node == 0 ? target : kCertain;
          },
          .rule = AcceptanceRule::kRejection,
          .randomness = &randomness},
         verdict);
  return verdict.tokens[0];
}

void add_all(TokenTree& tree, const std::vector<TokenId>& tokens) {
  for (const TokenId token : tokens) tree.add(0, token);
}

struct Scheme {
  std::string name;
  std::function<TokenId(Randomness&)> emit;
  Probabilities distribution;  // distribution of the emitted token; {}: differs from the target's
};
void PrintTo(const Scheme& scheme, std::ostream* out) { *out << scheme.name; }

std::vector<Scheme> exact_schemes() {
  const auto of = [](std::string name, std::function<void(TokenTree&, Randomness&)> grow) {
    return Scheme{std::move(name),
                  [grow = std::move(grow)](Randomness& randomness) {
                    return production([&](TokenTree& tree) { grow(tree, randomness); }, randomness);
                  },
                  kTarget};
  };
  return {
      of("TwoIndependent",
         [](TokenTree& tree, Randomness& randomness) {
           tree.set_distribution(0, distribution(kDraft), ChildrenKind::kIndependent);
           add_all(tree, drawn(kDraft, 2, ChildrenKind::kIndependent, randomness));
         }),
      of("TwoWithoutReplacement",
         [](TokenTree& tree, Randomness& randomness) {
           tree.set_distribution(0, distribution(kDraft));
           add_all(tree, drawn(kDraft, 2, ChildrenKind::kSampled, randomness));
         }),
      of("TopTwoPointMass", [](TokenTree& tree, Randomness&) { add_all(tree, top(kDraft, 2)); }),
      of("DropsUnlikelyPointMass",
         [](TokenTree& tree, Randomness& randomness) {
           const TokenId token = drawn(kDraft, 1, ChildrenKind::kSampled, randomness)[0];
           if (kDraft[static_cast<size_t>(token)] >= kMin) tree.add(0, token);
         }),
      of("TwoDraftersWithTheirOwnDistributions",
         [](TokenTree& tree, Randomness& randomness) {
           TokenTree other;
           other.set_distribution(0, distribution(kOtherDraft));
           add_all(other, drawn(kOtherDraft, 1, ChildrenKind::kSampled, randomness, 9));
           tree.set_distribution(0, distribution(kDraft));
           add_all(tree, drawn(kDraft, 2, ChildrenKind::kSampled, randomness));
           tree.merge(other, 1);
         }),
  };
}

std::vector<Proposed> proposals(const std::vector<TokenId>& tokens, const Probabilities& q) {
  std::vector<Proposed> all;
  for (const TokenId token : tokens) all.push_back({token, q});
  return all;
}

// Tests each token against q without the tokens before it, renormalised or not.
std::vector<Proposed> without_replacement(const std::vector<TokenId>& tokens, Probabilities q,
                                          bool is_scaled) {
  std::vector<Proposed> all;
  for (const TokenId token : tokens) {
    all.push_back({token, is_scaled ? normalised(q) : q});
    at(q, token) = 0.0;
  }
  return all;
}

Probabilities squared(Probabilities distribution) {
  for (double& mass : distribution) mass *= mass;
  return normalised(distribution);
}

bool is_unlikely(TokenId token) { return kDraft[static_cast<size_t>(token)] < kMin; }

void put_likelier_first(std::vector<TokenId>& tokens, const Probabilities& p) {
  if (p[static_cast<size_t>(tokens[1])] > p[static_cast<size_t>(tokens[0])]) std::swap(tokens[0], tokens[1]);
}

// A scheme that accepts the tokens of `propose` by the ratio rule.
Scheme biased(std::string name, std::function<std::vector<Proposed>(Randomness&)> propose,
              const Probabilities& distribution = {}) {
  return {std::move(name),
          [propose = std::move(propose)](Randomness& randomness) {
            return ratio_rule(propose(randomness), randomness);
          },
          distribution};
}

// Tokens that are tested against a distribution they were not drawn from.
std::vector<Scheme> schemes_with_a_wrong_distribution() {
  return {
      biased("WithoutReplacementNotScaled",
             [](Randomness& randomness) {
               const auto tokens = drawn(kDraft, 2, ChildrenKind::kSampled, randomness);
               return without_replacement(tokens, kDraft, false);
             },
             {.3410, .10, .15, .2522, .1567}),
      biased("TopTwoRatioRawDistribution", [](Randomness&) { return proposals(top(kDraft, 2), kDraft); },
             {.4038, .25, 0, .2365, .1096}),
      biased("TopTwoEagle1", [](Randomness&) { return without_replacement(top(kDraft, 2), kDraft, true); },
             {.45, .25, 0, .225, .075}),
      biased("TopTwoRandomOrderRatio",
             [](Randomness& randomness) {
               std::vector<TokenId> tokens = top(kDraft, 2);
               if (draw({.5, .5}, randomness, RandomPurpose::kDraft, 0) == 1) std::swap(tokens[0], tokens[1]);
               return proposals(tokens, kDraft);
             },
             {.3096, .125, .30, .1813, .0840}),
      biased("TestedWithASharpenedDistribution",
             [](Randomness& randomness) {
               return proposals(drawn(kDraft, 1, ChildrenKind::kSampled, randomness), squared(kDraft));
             },
             {.3417, .0665, .1595, .2614, .1710}),
  };
}

// Draws that are dropped or reordered depending on what was drawn.
std::vector<Scheme> schemes_with_a_biased_selection() {
  return {
      biased("DropsUnlikelyRatio",
             [](Randomness& randomness) {
               auto tokens = drawn(kDraft, 1, ChildrenKind::kSampled, randomness);
               std::erase_if(tokens, is_unlikely);
               return proposals(tokens, kDraft);
             },
             {.42, .12, .18, .18, .10}),
      biased("RepeatedIndependentDrawsTestedOnce",
             [](Randomness& randomness) {
               auto tokens = drawn(kDraft, 2, ChildrenKind::kIndependent, randomness);
               if (tokens[0] == tokens[1]) tokens.pop_back();
               return proposals(tokens, kDraft);
             }),
      biased("LikelierDrawTestedFirst",
             [](Randomness& randomness) {
               auto tokens = drawn(kDraft, 2, ChildrenKind::kIndependent, randomness);
               put_likelier_first(tokens, kDraft);
               return proposals(tokens, kDraft);
             }),
      biased("DrawTheTargetPrefersTestedFirst",
             [](Randomness& randomness) {
               auto tokens = drawn(kDraft, 2, ChildrenKind::kSampled, randomness);
               put_likelier_first(tokens, kTarget);
               return without_replacement(tokens, kDraft, true);
             }),
      biased("DrawsUntilTheFirstUnlikelyOneIsDropped",
             [](Randomness& randomness) {
               auto tokens = drawn(kDraft, 2, ChildrenKind::kIndependent, randomness);
               tokens.erase(std::find_if(tokens.begin(), tokens.end(), is_unlikely), tokens.end());
               return proposals(tokens, kDraft);
             }),
  };
}

// One draw by each of two drafters.
struct TwoDraws {
  TokenId first;
  TokenId second;
};
TwoDraws two_draws(Randomness& randomness, uint64_t second_draw = 1) {
  return {draw(kDraft, randomness, RandomPurpose::kDraft, 0),
          draw(kOtherDraft, randomness, RandomPurpose::kDraft, second_draw)};
}

std::vector<Scheme> biased_schemes_of_two_drafters() {
  return {
      biased("RepeatAcrossDraftersTestedOnce",
             [](Randomness& randomness) {
               const auto [a, b] = two_draws(randomness);
               std::vector<Proposed> all = {{a, kDraft}};
               if (b != a) all.push_back({b, kOtherDraft});
               return all;
             }),
      biased("SecondDrafterTestedWithTheFirstDistribution",
             [](Randomness& randomness) {
               const auto [a, b] = two_draws(randomness);
               return std::vector<Proposed>{{a, kDraft}, {b, kDraft}};
             }),
      biased("RepeatTestedWithTheFirstDistribution",
             [](Randomness& randomness) {
               const auto [a, b] = two_draws(randomness);
               return std::vector<Proposed>{{a, kDraft}, {b, b == a ? kDraft : kOtherDraft}};
             }),
      biased("RepeatTestedWithTheMixedDistribution",
             [](Randomness& randomness) {
               const auto [a, b] = two_draws(randomness);
               Probabilities mixed{};
               for (size_t i = 0; i < mixed.size(); ++i) mixed[i] = 0.5 * (kDraft[i] + kOtherDraft[i]);
               if (a == b) return std::vector<Proposed>{{a, mixed}};
               return std::vector<Proposed>{{a, kDraft}, {b, kOtherDraft}};
             }),
      biased("OrderByToken",
             [](Randomness& randomness) {
               const auto [a, b] = two_draws(randomness);
               std::vector<Proposed> all = {{a, kDraft}, {b, kOtherDraft}};
               if (b < a) std::swap(all[0], all[1]);
               return all;
             }),
      biased("BothDraftersDrawWithOneUniform",
             [](Randomness& randomness) {
               const auto [a, b] = two_draws(randomness, 0);
               return std::vector<Proposed>{{a, kDraft}, {b, kOtherDraft}};
             }),
      biased("SecondDrawKeptOnlyIfItRepeatsTheFirst",
             [](Randomness& randomness) {
               const auto [a, b] = two_draws(randomness);
               std::vector<Proposed> all = {{a, kDraft}};
               if (b == a) all.push_back({b, kOtherDraft});
               return all;
             }),
  };
}

Probabilities emitted_distribution(const Scheme& scheme) {
  Probabilities distribution{};
  ForkingRandomness randomness;
  while (randomness.next()) {
    const TokenId token = scheme.emit(randomness);
    at(distribution, token) += randomness.weight();
  }
  return distribution;
}

double total_variation(const Probabilities& a, const Probabilities& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += 0.5 * std::abs(a[i] - b[i]);
  return sum;
}

class ExactScheme : public testing::TestWithParam<Scheme> {};
class BiasedScheme : public testing::TestWithParam<Scheme> {};

TEST_P(ExactScheme, EmitsTheTargetsDistribution) {
  EXPECT_LE(total_variation(emitted_distribution(GetParam()), kTarget), 1e-12);
}

TEST_P(BiasedScheme, IsFound) {
  const Probabilities distribution = emitted_distribution(GetParam());
  EXPECT_GT(total_variation(distribution, kTarget), 1e-6);
  if (GetParam().distribution == Probabilities{}) return;
  for (size_t i = 0; i < distribution.size(); ++i)
    EXPECT_NEAR(distribution[i], GetParam().distribution[i], 5.1e-5) << "token " << i;
}

std::string name_of(const testing::TestParamInfo<Scheme>& scheme) { return scheme.param.name; }

INSTANTIATE_TEST_SUITE_P(All, ExactScheme, testing::ValuesIn(exact_schemes()), name_of);
INSTANTIATE_TEST_SUITE_P(WrongDistribution, BiasedScheme,
                         testing::ValuesIn(schemes_with_a_wrong_distribution()), name_of);
INSTANTIATE_TEST_SUITE_P(BiasedSelection, BiasedScheme, testing::ValuesIn(schemes_with_a_biased_selection()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(TwoDrafters, BiasedScheme, testing::ValuesIn(biased_schemes_of_two_drafters()),
                         name_of);

}  // namespace
}  // namespace outrider
