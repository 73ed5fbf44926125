// SPDX-License-Identifier: Apache-2.0
// Ways to draft and verify one token that look right, on two laws over five tokens: the biased ones put out
// the laws written here, which were computed in rational arithmetic; the exact ones put out p.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "speculation/exact_law_test.h"

namespace outrider {
namespace {

using Law = std::array<double, 5>;

constexpr Law kTarget = {.35, .10, .15, .25, .15};
constexpr Law kDraft = {.15, .40, .25, .12, .08};
constexpr Law kOtherDraft = {.05, .15, .30, .10, .40};
constexpr double kLeast = 0.14;  // the threshold of the schemes that drop unlikely tokens

Distribution distribution(const Law& law) { return {{0, 1, 2, 3, 4}, {law.begin(), law.end()}}; }

Law normalised(Law law) {
  const double sum = std::accumulate(law.begin(), law.end(), 0.0);
  for (double& mass : law) mass /= sum;
  return law;
}

double& at(Law& law, TokenId token) { return law[static_cast<size_t>(token)]; }

TokenId draw(const Law& law, Randomness& randomness, RandomPurpose purpose, uint64_t number) {
  return static_cast<TokenId>(randomness.categorical(law, 0, purpose, number));
}

std::vector<TokenId> drawn(const Law& law, int count, ChildrenKind kind, Randomness& randomness,
                           uint64_t first = 0) {
  Law remaining = law;
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back(draw(remaining, randomness, RandomPurpose::kDraft, first + static_cast<uint64_t>(i)));
    if (kind == ChildrenKind::kSampled) at(remaining, tokens.back()) = 0.0;
  }
  return tokens;
}

std::vector<TokenId> top(const Law& law, size_t count) {
  std::vector<TokenId> tokens(law.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::stable_sort(tokens.begin(), tokens.end(), [&](TokenId a, TokenId b) {
    return law[static_cast<size_t>(a)] > law[static_cast<size_t>(b)];
  });
  tokens.resize(count);
  return tokens;
}

// A token tested with min(1, p / q), leaving max(0, p - q).
struct Try {
  TokenId token;
  Law q;
};

TokenId ratio_rule(const std::vector<Try>& tries, Randomness& randomness) {
  Law p = kTarget;
  uint64_t number = 0;
  for (Try one : tries) {
    if (randomness.bernoulli(at(p, one.token) / at(one.q, one.token), 0, number++)) return one.token;
    for (size_t i = 0; i < p.size(); ++i) p[i] = std::max(0.0, p[i] - one.q[i]);
    p = normalised(p);
  }
  return draw(p, randomness, RandomPurpose::kResidual, 0);
}

// One step of the production code on a tree that `grow` makes.
TokenId production(const std::function<void(TokenTree&)>& grow, Randomness& randomness) {
  TokenTree tree;
  grow(tree);
  const Distribution target = distribution(kTarget);
  Verdict verdict;
  verify({.tree = &tree,
          .target_law = [&](int node) -> const Distribution& {
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
  std::function<TokenId(Randomness&)> put_out;
  Law law;  // of the token put out; {}: only known to differ from the target's
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
           tree.set_law(0, distribution(kDraft), ChildrenKind::kIndependent);
           add_all(tree, drawn(kDraft, 2, ChildrenKind::kIndependent, randomness));
         }),
      of("TwoWithoutReplacement",
         [](TokenTree& tree, Randomness& randomness) {
           tree.set_law(0, distribution(kDraft));
           add_all(tree, drawn(kDraft, 2, ChildrenKind::kSampled, randomness));
         }),
      of("TopTwoPointMass", [](TokenTree& tree, Randomness&) { add_all(tree, top(kDraft, 2)); }),
      of("DropsUnlikelyPointMass",
         [](TokenTree& tree, Randomness& randomness) {
           const TokenId token = drawn(kDraft, 1, ChildrenKind::kSampled, randomness)[0];
           if (kDraft[static_cast<size_t>(token)] >= kLeast) tree.add(0, token);
         }),
      of("TwoDraftersWithTheirOwnLaws",
         [](TokenTree& tree, Randomness& randomness) {
           TokenTree other;
           other.set_law(0, distribution(kOtherDraft));
           add_all(other, drawn(kOtherDraft, 1, ChildrenKind::kSampled, randomness, 9));
           tree.set_law(0, distribution(kDraft));
           add_all(tree, drawn(kDraft, 2, ChildrenKind::kSampled, randomness));
           tree.merge(other, 1);
         }),
  };
}

std::vector<Try> tries(const std::vector<TokenId>& tokens, const Law& q) {
  std::vector<Try> all;
  for (const TokenId token : tokens) all.push_back({token, q});
  return all;
}

// q without the tokens tried before, scaled to sum 1 or not.
std::vector<Try> tries_without_replacement(const std::vector<TokenId>& tokens, Law q, bool is_scaled) {
  std::vector<Try> all;
  for (const TokenId token : tokens) {
    all.push_back({token, is_scaled ? normalised(q) : q});
    at(q, token) = 0.0;
  }
  return all;
}

Law squared(Law law) {
  for (double& mass : law) mass *= mass;
  return normalised(law);
}

std::vector<Scheme> biased_schemes_of_one_drafter() {
  return {
      {"WithoutReplacementNotScaled",
       [](Randomness& randomness) {
         const auto tokens = drawn(kDraft, 2, ChildrenKind::kSampled, randomness);
         return ratio_rule(tries_without_replacement(tokens, kDraft, false), randomness);
       },
       {.3410, .10, .15, .2522, .1567}},
      {"TopTwoRatioRawLaw",
       [](Randomness& randomness) { return ratio_rule(tries(top(kDraft, 2), kDraft), randomness); },
       {.4038, .25, 0, .2365, .1096}},
      {"TopTwoEagle1",
       [](Randomness& randomness) {
         return ratio_rule(tries_without_replacement(top(kDraft, 2), kDraft, true), randomness);
       },
       {.45, .25, 0, .225, .075}},
      {"TopTwoRandomOrderRatio",
       [](Randomness& randomness) {
         std::vector<TokenId> tokens = top(kDraft, 2);
         if (draw({.5, .5}, randomness, RandomPurpose::kDraft, 0) == 1) std::swap(tokens[0], tokens[1]);
         return ratio_rule(tries(tokens, kDraft), randomness);
       },
       {.3096, .125, .30, .1813, .0840}},
      {"DropsUnlikelyRatio",
       [](Randomness& randomness) {
         std::vector<TokenId> tokens = drawn(kDraft, 1, ChildrenKind::kSampled, randomness);
         std::erase_if(tokens, [](TokenId token) { return kDraft[static_cast<size_t>(token)] < kLeast; });
         return ratio_rule(tries(tokens, kDraft), randomness);
       },
       {.42, .12, .18, .18, .10}},
      {"TestedWithASharpenedLaw",
       [](Randomness& randomness) {
         const auto tokens = drawn(kDraft, 1, ChildrenKind::kSampled, randomness);
         return ratio_rule(tries(tokens, squared(kDraft)), randomness);
       },
       {.3417, .0665, .1595, .2614, .1710}},
      {"RepeatedIndependentDrawsTriedOnce",
       [](Randomness& randomness) {
         std::vector<TokenId> tokens = drawn(kDraft, 2, ChildrenKind::kIndependent, randomness);
         if (tokens[0] == tokens[1]) tokens.pop_back();
         return ratio_rule(tries(tokens, kDraft), randomness);
       },
       {}},
      {"LikelierDrawTriedFirst",
       [](Randomness& randomness) {
         auto tokens = drawn(kDraft, 2, ChildrenKind::kIndependent, randomness);
         if (kDraft[static_cast<size_t>(tokens[1])] > kDraft[static_cast<size_t>(tokens[0])])
           std::swap(tokens[0], tokens[1]);
         return ratio_rule(tries(tokens, kDraft), randomness);
       },
       {}},
      {"DrawTheTargetLikesTriedFirst",
       [](Randomness& randomness) {
         auto tokens = drawn(kDraft, 2, ChildrenKind::kSampled, randomness);
         if (kTarget[static_cast<size_t>(tokens[1])] > kTarget[static_cast<size_t>(tokens[0])])
           std::swap(tokens[0], tokens[1]);
         return ratio_rule(tries_without_replacement(tokens, kDraft, true), randomness);
       },
       {}},
      {"DrawsUntilTheFirstUnlikelyOneIsDropped",
       [](Randomness& randomness) {
         auto tokens = drawn(kDraft, 2, ChildrenKind::kIndependent, randomness);
         const auto unlikely = [](TokenId token) { return kDraft[static_cast<size_t>(token)] < kLeast; };
         tokens.erase(std::find_if(tokens.begin(), tokens.end(), unlikely), tokens.end());
         return ratio_rule(tries(tokens, kDraft), randomness);
       },
       {}},
  };
}

// One draw of each of two drafters.
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
      {"RepeatAcrossDraftersTriedOnce",
       [](Randomness& randomness) {
         const auto [a, b] = two_draws(randomness);
         std::vector<Try> all = {{a, kDraft}};
         if (b != a) all.push_back({b, kOtherDraft});
         return ratio_rule(all, randomness);
       },
       {}},
      {"SecondDrafterTestedWithTheFirstLaw",
       [](Randomness& randomness) {
         const auto [a, b] = two_draws(randomness);
         return ratio_rule({{a, kDraft}, {b, kDraft}}, randomness);
       },
       {}},
      {"RepeatTestedWithTheFirstLaw",
       [](Randomness& randomness) {
         const auto [a, b] = two_draws(randomness);
         return ratio_rule({{a, kDraft}, {b, b == a ? kDraft : kOtherDraft}}, randomness);
       },
       {}},
      {"RepeatTestedWithTheMixedLaw",
       [](Randomness& randomness) {
         const auto [a, b] = two_draws(randomness);
         Law mixed{};
         for (size_t i = 0; i < mixed.size(); ++i) mixed[i] = 0.5 * (kDraft[i] + kOtherDraft[i]);
         if (a == b) return ratio_rule({{a, mixed}}, randomness);
         return ratio_rule({{a, kDraft}, {b, kOtherDraft}}, randomness);
       },
       {}},
      {"OrderByToken",
       [](Randomness& randomness) {
         const auto [a, b] = two_draws(randomness);
         std::vector<Try> all = {{a, kDraft}, {b, kOtherDraft}};
         if (b < a) std::swap(all[0], all[1]);
         return ratio_rule(all, randomness);
       },
       {}},
      {"BothDraftersDrawWithOneUniform",
       [](Randomness& randomness) {
         const auto [a, b] = two_draws(randomness, 0);
         return ratio_rule({{a, kDraft}, {b, kOtherDraft}}, randomness);
       },
       {}},
      {"RoomOnlyForRepeats",
       [](Randomness& randomness) {
         const auto [a, b] = two_draws(randomness);
         std::vector<Try> all = {{a, kDraft}};
         if (b == a) all.push_back({b, kOtherDraft});
         return ratio_rule(all, randomness);
       },
       {}},
  };
}

Law law_put_out(const Scheme& scheme) {
  Law law{};
  ForkingRandomness randomness;
  while (randomness.next()) {
    const TokenId token = scheme.put_out(randomness);
    at(law, token) += randomness.weight();
  }
  return law;
}

double total_variation(const Law& a, const Law& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += 0.5 * std::abs(a[i] - b[i]);
  return sum;
}

class ExactScheme : public testing::TestWithParam<Scheme> {};
class BiasedScheme : public testing::TestWithParam<Scheme> {};

TEST_P(ExactScheme, PutsOutTheTargetsLaw) {
  EXPECT_LE(total_variation(law_put_out(GetParam()), kTarget), 1e-12);
}

TEST_P(BiasedScheme, IsFound) {
  const Law law = law_put_out(GetParam());
  EXPECT_GT(total_variation(law, kTarget), 1e-6);
  if (GetParam().law == Law{}) return;
  for (size_t i = 0; i < law.size(); ++i) EXPECT_NEAR(law[i], GetParam().law[i], 5.1e-5) << "token " << i;
}

std::string name_of(const testing::TestParamInfo<Scheme>& scheme) { return scheme.param.name; }

INSTANTIATE_TEST_SUITE_P(All, ExactScheme, testing::ValuesIn(exact_schemes()), name_of);
INSTANTIATE_TEST_SUITE_P(OneDrafter, BiasedScheme, testing::ValuesIn(biased_schemes_of_one_drafter()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(TwoDrafters, BiasedScheme, testing::ValuesIn(biased_schemes_of_two_drafters()),
                         name_of);

}  // namespace
}  // namespace outrider
