// SPDX-License-Identifier: Apache-2.0
#include "sampling/logits_processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>

#include "base/portable_math.h"
#include "sampling/distribution.h"

namespace outrider::logits_processor_test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Distribution distribution_of(const std::vector<float>& logits, const SamplingParams& params,
                             const TokenHistory& history = {}) {
  LogitsProcessor builder;
  return builder.build(logits, params, history);
}

SamplingParams at_temperature(double temperature) {
  SamplingParams params;
  params.temperature = temperature;
  return params;
}

// With bias and penalties, without truncation.
TEST(LogitsProcessor, ListsTheLikeliestWithTheirSharesOfTheWhole) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits(1 + random() % 300);
    for (float& logit : logits) logit = normal(random);
    logits[random() % logits.size()] = -kInf;
    SamplingParams params = at_temperature(0.3 + static_cast<double>(random() % 20) / 10);
    TokenHistory history;
    if (round % 2 == 1) {
      params.logit_bias = {{static_cast<TokenId>(random() % logits.size()), 4.0f}};
      params.repetition_penalty = 1.2;
      history.add_prompt(std::vector<TokenId>{static_cast<TokenId>(random() % logits.size())});
    }
    const int count = 1 + static_cast<int>(random() % 12);
    LogitsProcessor processor;
    const Distribution whole = processor.build(logits, params, history);
    const Distribution listed = processor.list_likeliest(count, logits, params, history);
    ASSERT_EQ(listed.tokens.size(), std::min<size_t>(static_cast<size_t>(count), whole.tokens.size()));
    std::vector<double> largest = whole.probabilities;
    std::sort(largest.rbegin(), largest.rend());
    for (size_t i = 0; i < listed.tokens.size(); ++i) {
      const auto at = std::find(whole.tokens.begin(), whole.tokens.end(), listed.tokens[i]);
      ASSERT_NE(at, whole.tokens.end());
      const double expected = whole.probabilities[static_cast<size_t>(at - whole.tokens.begin())];
      EXPECT_NEAR(listed.probabilities[i], expected, 1e-8);
      EXPECT_GE(listed.probabilities[i], largest[listed.tokens.size() - 1] - 1e-8);
    }
  }
}

TEST(LogitsProcessor, ListsNothingOrTheInfiniteWhereThereIsNothingElse) {
  LogitsProcessor processor;
  const TokenHistory history;
  const SamplingParams params = at_temperature(1.0);
  EXPECT_TRUE(processor.list_likeliest(3, std::vector<float>{-kInf, -kInf}, params, history).empty());
  const Distribution shared = processor.list_likeliest(3, std::vector<float>{1, kInf, kInf}, params, history);
  EXPECT_THAT(shared.tokens, ElementsAre(1, 2));
  EXPECT_THAT(shared.probabilities, ElementsAre(0.5, 0.5));
}

struct Case {
  std::vector<float> logits;
  SamplingParams params;
  std::vector<TokenId> prompt;
  std::vector<TokenId> output;
  std::vector<TokenId> breakers = {};
  double draw = 1.0;  // of XTC
};

// By the definition: for every place the longest common end, with every end of the tokens.
double reference_dry_penalty(const Case& c, TokenId token) {
  std::vector<TokenId> tokens = c.prompt;
  tokens.insert(tokens.end(), c.output.begin(), c.output.end());
  const DryPenalty& dry = c.params.dry;
  const auto last = static_cast<size_t>(dry.last_n < 0 ? std::ssize(tokens) : dry.last_n);
  tokens.erase(tokens.begin(), tokens.end() - static_cast<ptrdiff_t>(std::min(last, tokens.size())));
  const auto is_breaker = [&](TokenId id) { return std::ranges::find(c.breakers, id) != c.breakers.end(); };
  size_t longest = 0;
  for (size_t end = 1; end < tokens.size(); ++end) {
    if (tokens[end] != token) continue;
    size_t length = 0;
    while (length < end && tokens[end - 1 - length] == tokens[tokens.size() - 1 - length] &&
           !is_breaker(tokens[end - 1 - length]))
      ++length;
    longest = std::max(longest, length);
  }
  if (dry.multiplier == 0 || is_breaker(token) || longest < static_cast<size_t>(dry.allowed_length)) return 0;
  return dry.multiplier * std::pow(dry.base, static_cast<double>(longest) - dry.allowed_length);
}

int64_t occurrences(const std::vector<TokenId>& tokens, TokenId token) {
  return std::count(tokens.begin(), tokens.end(), token);
}

double reference_logit(const Case& c, TokenId token) {
  double logit = c.logits[static_cast<size_t>(token)];
  for (const auto& [id, bias] : c.params.logit_bias) logit += id == token ? bias : 0.0f;
  if (occurrences(c.prompt, token) + occurrences(c.output, token) > 0) {
    logit = logit > 0 ? logit / c.params.repetition_penalty : logit * c.params.repetition_penalty;
  }
  if (const int64_t n = occurrences(c.output, token); n > 0) {
    logit -= c.params.presence_penalty + c.params.frequency_penalty * static_cast<double>(n);
  }
  return logit - reference_dry_penalty(c, token);
}

using Entry = std::pair<double, TokenId>;  // (-value, token): ascending order is likeliest first, ties by id

void cut_below_sigmas(double n, std::vector<Entry>& ranked) {
  double sum = 0, squares = 0;
  for (const Entry& entry : ranked) sum -= entry.first;
  const double mean = sum / static_cast<double>(ranked.size());
  for (const Entry& entry : ranked) squares += (-entry.first - mean) * (-entry.first - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(ranked.size()));
  const double least = -ranked[0].first - n * deviation;
  std::erase_if(ranked, [least](const Entry& entry) { return -entry.first < least; });
}

// weights: (-weight, token).
void cut_to_typical(double mass, std::vector<Entry>& weights) {
  double total = 0, entropy = 0;
  for (const Entry& entry : weights) total -= entry.first;
  const auto surprise = [&](const Entry& entry) { return -std::log(-entry.first / total); };
  for (const Entry& entry : weights) entropy += -entry.first / total * surprise(entry);
  std::ranges::sort(weights, {}, [&](const Entry& entry) {
    return std::pair(std::round(std::abs(surprise(entry) - entropy) * 1e9), entry.second);
  });
  double reached = 0;
  size_t kept = 0;
  while (kept < weights.size() && reached < mass * total) reached -= weights[kept++].first;
  weights.resize(kept);
}

void exclude_top(double threshold, std::map<TokenId, double>& kept) {
  double total = 0;
  for (const auto& [token, weight] : kept) total += weight;
  std::vector<Entry> top;
  for (const auto& [token, weight] : kept) {
    if (weight >= threshold * total) top.emplace_back(-weight, token);
  }
  std::ranges::sort(top);
  for (size_t i = 0; i + 1 < top.size(); ++i) kept.erase(top[i].second);
}

// A reference that applies every step to the whole vocabulary, in descending order of likelihood.
std::map<TokenId, double> reference_distribution(const Case& c) {
  std::vector<Entry> ranked;
  for (TokenId token = 0; token < static_cast<TokenId>(c.logits.size()); ++token) {
    const double logit = reference_logit(c, token);
    if (logit > -kInf) ranked.emplace_back(-logit, token);
  }
  std::sort(ranked.begin(), ranked.end());
  if (ranked.empty()) return {};
  if (c.params.temperature == 0) return {{ranked[0].second, 1.0}};
  const bool is_infinite = std::isinf(ranked[0].first);
  if (c.params.top_n_sigma > 0 && !is_infinite) cut_below_sigmas(c.params.top_n_sigma, ranked);
  if (is_infinite) std::erase_if(ranked, [](const Entry& entry) { return !std::isinf(entry.first); });
  if (c.params.top_k > 0) ranked.resize(std::min(ranked.size(), static_cast<size_t>(c.params.top_k)));
  const double largest = -ranked[0].first;
  double sum = 0;
  for (Entry& entry : ranked) {
    const bool both_infinite = std::isinf(largest) && -entry.first == largest;
    entry.first = both_infinite ? -1.0 : -std::exp((-entry.first - largest) / c.params.temperature);
  }
  std::erase_if(ranked, [](const Entry& entry) { return -entry.first < std::numeric_limits<double>::min(); });
  if (c.params.typical_p < 1) cut_to_typical(c.params.typical_p, ranked);
  for (const Entry& entry : ranked) sum -= entry.first;
  std::sort(ranked.begin(), ranked.end());
  std::map<TokenId, double> kept;
  double reached = 0;
  for (const auto& [negative_weight, token] : ranked) {
    if (c.params.top_p < 1 && reached >= c.params.top_p * sum) break;
    reached -= negative_weight;
    const double smallest = std::max(c.params.min_p, std::numeric_limits<double>::min());
    if (-negative_weight >= smallest) kept[token] = -negative_weight;
  }
  if (c.draw < c.params.xtc_probability) exclude_top(c.params.xtc_threshold, kept);
  double kept_sum = 0;
  for (const auto& [token, weight] : kept) kept_sum += weight;
  for (auto& [token, weight] : kept) weight /= kept_sum;
  return kept;
}

class RandomCases {
 public:
  Case next() {
    Case c;
    const int vocabulary = pick(1, chance(0.1) ? 1000 : 40);
    const double step = chance(0.5) ? 1.0 : 1e-3;  // a coarse grid makes ties
    for (int i = 0; i < vocabulary; ++i)
      c.logits.push_back(static_cast<float>(std::round(normal() / step) * step));
    for (float& logit : c.logits) {
      if (chance(0.05)) logit = chance(0.5) ? -kInf : kNan;
    }
    if (chance(0.05)) c.logits[static_cast<size_t>(pick(0, vocabulary - 1))] = kInf;
    const double temperatures[] = {0, 1e-8, 1e-4, 0.5, 1, 2};
    c.params.temperature = temperatures[pick(0, 5)];
    if (chance(0.4)) c.params.top_k = pick(1, vocabulary + 2);
    if (chance(0.4)) c.params.top_p = uniform(0.01, 1);
    if (chance(0.4)) c.params.min_p = uniform(0, 1);
    if (chance(0.4)) c.params.repetition_penalty = uniform(0.5, 2);
    if (chance(0.4)) c.params.presence_penalty = uniform(-2, 2);
    if (chance(0.4)) c.params.frequency_penalty = uniform(-2, 2);
    for (int i = pick(0, 3); i > 0; --i) {
      const auto bias = static_cast<float>(uniform(-5, 5));
      c.params.logit_bias.emplace_back(pick(0, vocabulary + 1), chance(0.3) ? -kInf : bias);
    }
    for (int i = pick(0, 10); i > 0; --i) c.prompt.push_back(pick(0, vocabulary + 1));
    for (int i = pick(0, 10); i > 0; --i) c.output.push_back(pick(0, vocabulary + 1));
    return c;
  }
  // With the cuts and the penalty that few requests have.
  Case next_of_rare_kinds() {
    Case c = next();
    if (chance(0.3)) c.params.top_n_sigma = uniform(0.1, 3);
    if (chance(0.3)) c.params.typical_p = uniform(0.05, 1);
    if (chance(0.5)) c.params.xtc_probability = uniform(0, 1);
    c.params.xtc_threshold = uniform(0, 0.6);
    c.draw = uniform(0, 1);
    if (chance(0.5)) return c;
    c.params.dry = {.multiplier = uniform(0, 3), .base = uniform(1, 3), .allowed_length = pick(1, 3)};
    if (chance(0.3)) c.params.dry.last_n = pick(0, 20);
    const int letters = pick(1, 3);  // few, so that much repeats
    for (int i = pick(0, 30); i > 0; --i) c.prompt.push_back(pick(0, letters));
    for (int i = pick(0, 30); i > 0; --i) c.output.push_back(pick(0, letters));
    if (chance(0.3)) c.breakers.push_back(pick(0, letters));
    return c;
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine_);
  }
  bool chance(double p) { return uniform(0, 1) < p; }
  double normal() { return std::normal_distribution<double>(0, 2)(engine_); }

  std::mt19937_64 engine_{20240607};
};

TEST(LogitsProcessor, AgreesWithTheFullSortReference) {
  RandomCases cases;
  LogitsProcessor builder;
  for (int i = 0; i < 40000; ++i) {
    const Case c = i % 2 == 0 ? cases.next() : cases.next_of_rare_kinds();
    TokenHistory history;
    std::vector<uint64_t> breakers(1);
    for (const TokenId token : c.breakers) breakers[0] |= uint64_t{1} << token;
    history.set_breakers(std::make_shared<const std::vector<uint64_t>>(breakers));
    history.add_prompt(c.prompt);
    for (const TokenId token : c.output) history.push(token);
    const std::map<TokenId, double> expected = reference_distribution(c);
    const Distribution& distribution = builder.build(c.logits, c.params, history, c.draw);
    ASSERT_EQ(distribution.tokens.size(), expected.size()) << "case " << i;
    size_t at = 0;
    for (const auto& [token, probability] : expected) {
      ASSERT_EQ(distribution.tokens[at], token) << "case " << i;
      ASSERT_NEAR(distribution.probabilities[at], probability, 1e-12) << "case " << i << " token " << token;
      ++at;
    }
    ASSERT_TRUE(distribution.empty() || is_proper(distribution)) << "case " << i;
  }
}

// A reference for top-p and min-p that computes and sorts all weights exactly. LogitsProcessor must give the
// same bits.
Distribution exact_nucleus(const std::vector<float>& logits, const SamplingParams& params) {
  struct Weighed {
    TokenId token;
    double weight;
  };
  double largest = -kInf;
  for (const float logit : logits) largest = logit > largest ? logit : largest;
  std::vector<Weighed> all;
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double weight = portable_exp((static_cast<double>(logits[i]) - largest) / params.temperature);
    if (!(weight >= std::numeric_limits<double>::min())) continue;
    all.push_back({static_cast<TokenId>(i), weight});
    total += weight;
  }
  if (params.top_p < 1) {
    std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.weight > b.weight; });
    double reached = 0;
    size_t kept = 0;
    while (kept < all.size() && reached < params.top_p * total) reached += all[kept++].weight;
    all.resize(kept);
    std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.token < b.token; });
  }
  std::erase_if(all, [&](auto& one) { return one.weight < params.min_p; });
  double kept_total = 0;
  for (const Weighed& one : all) kept_total += one.weight;
  Distribution distribution;
  for (const Weighed& one : all) {
    distribution.tokens.push_back(one.token);
    distribution.probabilities.push_back(one.weight / kept_total);
  }
  return distribution;
}

// Logits of many shapes: steep, flat, with plateaus of equal ones, with NaN and -infinity.
std::vector<float> shaped_logits(std::mt19937_64& engine) {
  std::uniform_real_distribution<float> uniform(0, 1);
  const float widths[] = {0.0F, 1e-6F, 0.3F, 3.0F, 30.0F, 1e4F};
  const float width = widths[engine() % 6];
  const float step = engine() % 3 == 0 ? 0.5F : 0.0F;
  const size_t lifted = engine() % 4 == 0 ? 0 : engine() % 200;
  std::normal_distribution<float> normal(uniform(engine) * 40 - 20, 1);
  std::vector<float> logits(1 + engine() % 5000);
  for (float& logit : logits) {
    logit = width * normal(engine);
    if (step > 0) logit = std::round(logit / step) * step;
    if (engine() % 100 == 0) logit = engine() % 2 == 0 ? -kInf : kNan;
  }
  for (size_t i = 0; i < lifted; ++i) logits[engine() % logits.size()] += 16 * uniform(engine);
  return logits;
}

TEST(LogitsProcessor, CutsOfTheWholeVocabularyHaveTheBitsOfTheExactNucleus) {
  std::mt19937_64 engine(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  LogitsProcessor builder;
  size_t partial = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::vector<float> logits = shaped_logits(engine);
    const double temperatures[] = {1e-7, 1e-5, 0.1, 0.7, 1, 3, 1e5, 1e7};
    SamplingParams params = at_temperature(temperatures[engine() % 8]);
    const double nuclei[] = {
        1e-9, 0.5, 0.9, 0.95, 0.999999, std::nextafter(1.0, 0.0), uniform(engine) + 1e-12};
    if (engine() % 4 != 0) params.top_p = nuclei[engine() % 7];
    if (engine() % 2 == 0) params.min_p = engine() % 5 == 0 ? 1.0 : uniform(engine) * uniform(engine);
    const Distribution expected = exact_nucleus(logits, params);
    const Distribution& distribution = builder.build(logits, params, {});
    ASSERT_EQ(distribution.tokens, expected.tokens) << "case " << i;
    ASSERT_EQ(distribution.probabilities, expected.probabilities) << "case " << i;
    partial += distribution.tokens.size() < logits.size() / 2 ? 1 : 0;
  }
  EXPECT_GT(partial, 1000u);
}

// Tokens with bias or penalty take another path than the others. Logits that were adjusted beforehand must
// give the same distribution.
TEST(LogitsProcessor, CutsOfAdjustedLogitsHaveTheBitsOfTheExactNucleus) {
  std::mt19937_64 engine(8);
  LogitsProcessor builder;
  for (int i = 0; i < 1000; ++i) {
    std::vector<float> logits = shaped_logits(engine);
    SamplingParams params = at_temperature(0.7);
    params.top_p = 0.9;
    std::vector<float> adjusted = logits;
    for (int j = 0; j < 20; ++j) {
      const size_t token = engine() % logits.size();
      const float bias = j % 5 == 0 ? -kInf : 8.0F;
      if (std::find_if(params.logit_bias.begin(), params.logit_bias.end(), [&](auto& entry) {
            return entry.first == static_cast<TokenId>(token);
          }) != params.logit_bias.end())
        continue;
      params.logit_bias.emplace_back(token, bias);
      logits[token] = std::round(logits[token]);  // so that the sum is a float
      adjusted[token] = logits[token] + bias;
    }
    const Distribution expected = exact_nucleus(adjusted, params);
    const Distribution& distribution = builder.build(logits, params, {});
    ASSERT_EQ(distribution.tokens, expected.tokens) << "case " << i;
    ASSERT_EQ(distribution.probabilities, expected.probabilities) << "case " << i;
  }
}

// The approximate sum cannot decide this case: the nucleus ends exactly where half of the mass is reached.
TEST(LogitsProcessor, NucleusEndsExactlyAtItsMass) {
  std::vector<float> logits(1000, -1e4F);
  for (const size_t token : {10, 20, 30, 40}) logits[token] = 3;
  SamplingParams params = at_temperature(1);
  params.top_p = 0.5;
  EXPECT_THAT(distribution_of(logits, params).tokens, ElementsAre(10, 20));
  params.top_p = std::nextafter(0.5, 1.0);
  EXPECT_THAT(distribution_of(logits, params).tokens, ElementsAre(10, 20, 30));
}

TEST(LogitsProcessor, GreedyTakesTheLowestOfEqualLogits) {
  EXPECT_THAT(distribution_of({1, 3, -2, 3}, at_temperature(0)).tokens, ElementsAre(1));
  EXPECT_THAT(distribution_of({kNan, -kInf, -5, kNan}, at_temperature(0)).tokens, ElementsAre(2));
  EXPECT_THAT(distribution_of({1, kInf, kInf}, at_temperature(0)).tokens, ElementsAre(1));
}

TEST(LogitsProcessor, GreedyHonoursBiasAndPenalties) {
  SamplingParams params = at_temperature(0);
  params.logit_bias = {{1, -kInf}};
  EXPECT_THAT(distribution_of({1, 3, 2}, params).tokens, ElementsAre(2));
  params = at_temperature(0);
  params.presence_penalty = 1.5;
  TokenHistory history;
  history.push(1);
  EXPECT_THAT(distribution_of({1, 3, 2}, params, history).tokens, ElementsAre(2));
}

TEST(LogitsProcessor, SoftmaxByHand) {
  const Distribution distribution = distribution_of(
      {static_cast<float>(std::log(2.0)), 0, static_cast<float>(std::log(5.0))}, at_temperature(1));
  EXPECT_THAT(distribution.tokens, ElementsAre(0, 1, 2));
  EXPECT_THAT(distribution.probabilities,
              ElementsAre(DoubleNear(0.25, 1e-7), DoubleNear(0.125, 1e-7), DoubleNear(0.625, 1e-7)));
}

TEST(LogitsProcessor, CutsByHand) {
  const std::vector<float> logits = {0, static_cast<float>(std::log(4.0)), 0,
                                     static_cast<float>(std::log(2.0))};
  SamplingParams top_k = at_temperature(1);  // probabilities 1/8 1/2 1/8 1/4
  top_k.top_k = 3;
  EXPECT_THAT(distribution_of(logits, top_k).tokens, ElementsAre(0, 1, 3));
  SamplingParams top_p = at_temperature(1);
  top_p.top_p = 0.7;
  EXPECT_THAT(distribution_of(logits, top_p).tokens, ElementsAre(1, 3));
  SamplingParams min_p = at_temperature(1);
  min_p.min_p = 0.45;
  EXPECT_THAT(distribution_of(logits, min_p).tokens, ElementsAre(1, 3));
}

TEST(LogitsProcessor, TopPIsTakenOfWhatTopKLeaves) {
  SamplingParams params = at_temperature(1);
  params.top_k = 2;
  params.top_p = 0.5;  // of 4 equal tokens two are left, of which the first reaches a half
  EXPECT_THAT(distribution_of({0, 0, 0, 0}, params).tokens, ElementsAre(0));
}

TEST(LogitsProcessor, TopPReachesItsMassBeyondTheFirstSortedBlock) {
  SamplingParams params = at_temperature(1);
  params.top_p = 0.5;
  const Distribution distribution = distribution_of(std::vector<float>(4096, 1.0f), params);
  ASSERT_EQ(distribution.tokens.size(), 2048u);
  EXPECT_EQ(distribution.tokens.front(), 0);
  EXPECT_EQ(distribution.tokens.back(), 2047);
}

TEST(LogitsProcessor, RareCutsByHand) {
  const std::vector<float> logits = {std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.1f)};
  SamplingParams typical = at_temperature(1);  // the entropy is 1.28, the information 0.92, 1.2, 1.61, 2.3
  typical.typical_p = 0.25;
  EXPECT_THAT(distribution_of(logits, typical).tokens, ElementsAre(1));
  typical.typical_p = 0.45;
  EXPECT_THAT(distribution_of(logits, typical).tokens, ElementsAre(1, 2));
  SamplingParams sigmas = at_temperature(5);
  sigmas.top_n_sigma = 1;
  EXPECT_THAT(distribution_of({0, 0, 10, 9, 0, 0}, sigmas).tokens, ElementsAre(2, 3));
  SamplingParams xtc = at_temperature(1);
  xtc.xtc_probability = 0.5;
  xtc.xtc_threshold = 0.15;
  LogitsProcessor builder;
  EXPECT_THAT(builder.build(logits, xtc, {}, 0.49).tokens, ElementsAre(2, 3));
  EXPECT_EQ(builder.build(logits, xtc, {}, 0.5).tokens.size(), 4u);
  EXPECT_EQ(builder.build(logits, xtc, {}).tokens.size(), 4u);
}

TEST(LogitsProcessor, DryPenaltyByHand) {
  TokenHistory history;
  const TokenId prompt[] = {0, 1, 2, 3, 9, 0, 1, 2};
  history.add_prompt(prompt);
  SamplingParams params;
  params.dry = {.multiplier = 1, .base = 2};  // 3 would make the repetition 0 1 2 one longer: 2^(3 - 2)
  EXPECT_THAT(distribution_of({0, 0, 0, 1, 0, -2}, params, history).tokens, ElementsAre(0));
  EXPECT_THAT(distribution_of({0, 0, 0, 2.5, 0, -2}, params, history).tokens, ElementsAre(3));
  history.set_breakers(std::make_shared<const std::vector<uint64_t>>(std::vector<uint64_t>{1u << 1}));
  EXPECT_THAT(distribution_of({0, 0, 0, 1, 0, -2}, params, history).tokens, ElementsAre(3));
}

TEST(LogitsProcessor, RepetitionPenaltyByHand) {
  SamplingParams params = at_temperature(1);
  params.repetition_penalty = 2;
  TokenHistory history;
  const TokenId prompt[] = {0, 2};
  history.add_prompt(prompt);
  const Distribution distribution = distribution_of({2, 1, -1, -2}, params, history);  // becomes 1 1 -2 -2
  EXPECT_DOUBLE_EQ(distribution.probabilities[0], distribution.probabilities[1]);
  EXPECT_DOUBLE_EQ(distribution.probabilities[2], distribution.probabilities[3]);
  EXPECT_NEAR(distribution.probabilities[0] / distribution.probabilities[2], std::exp(3.0), 1e-9);
}

TEST(LogitsProcessor, TinyTemperaturesGiveTheGreedyDistribution) {
  for (const double temperature : {1e-4, 1e-8, 1e-300, 5e-324}) {
    const Distribution distribution = distribution_of({-3e38f, 1, 3e38f, 2}, at_temperature(temperature));
    EXPECT_THAT(distribution.tokens, ElementsAre(2)) << temperature;
    EXPECT_THAT(distribution.probabilities, ElementsAre(1.0)) << temperature;
  }
  EXPECT_THAT(distribution_of({1, 1, 0}, at_temperature(1e-8)).probabilities, ElementsAre(0.5, 0.5));
}

TEST(LogitsProcessor, HugeTemperatureIsUniform) {
  EXPECT_THAT(distribution_of({-3e38f, 3e38f}, at_temperature(1e300)).probabilities, ElementsAre(0.5, 0.5));
}

TEST(LogitsProcessor, InfiniteAndNanLogitsAreDefined) {
  EXPECT_THAT(distribution_of({kInf, 1, kInf, kNan}, at_temperature(1)).tokens, ElementsAre(0, 2));
  EXPECT_THAT(distribution_of({kInf, 1, kInf}, at_temperature(1)).probabilities, ElementsAre(0.5, 0.5));
  SamplingParams forbidding = at_temperature(1);
  forbidding.logit_bias = {{0, -kInf}};
  EXPECT_THAT(distribution_of({kInf, 1}, forbidding).tokens, ElementsAre(1));
}

TEST(LogitsProcessor, NoTokenLeftGivesAnEmptyDistribution) {
  for (const double temperature : {0.0, 1.0}) {
    SamplingParams params = at_temperature(temperature);
    EXPECT_THAT(distribution_of({-kInf, kNan}, params).tokens, IsEmpty());
    EXPECT_THAT(distribution_of({}, params).tokens, IsEmpty());
    params.logit_bias = {{0, -kInf}};
    EXPECT_THAT(distribution_of({1.0f}, params).tokens, IsEmpty());
  }
}

TEST(LogitsProcessor, ForgetsThePreviousCall) {
  LogitsProcessor builder;
  const TokenHistory history;
  builder.build(std::vector<float>{1, 2, 3, 4}, at_temperature(1), history);
  EXPECT_THAT(builder.build(std::vector<float>{7, 1}, at_temperature(0), history).tokens, ElementsAre(0));
  EXPECT_THAT(builder.build(std::vector<float>{1, 1}, at_temperature(1), history).probabilities,
              ElementsAre(0.5, 0.5));
}

// Both may differ in ties of rounded numbers, which these seeds do not produce.
TEST(CoupledChooser, ChoosesWhatTheDistributionsCoupledPickIs) {
  RandomCases cases;
  CoupledChooser chooser;
  int plain = 0;
  for (int i = 0; i < 20000; ++i) {
    Case c = cases.next();
    if (i % 3 == 0) {  // a plain softmax
      SamplingParams params;
      params.temperature = c.params.temperature;
      c.params = params;
      plain += params.temperature > 0 ? 1 : 0;
    }
    TokenHistory history;
    history.add_prompt(c.prompt);
    for (const TokenId token : c.output) history.push(token);
    CounterRandomness randomness(static_cast<uint64_t>(i), 0);
    const Distribution distribution = distribution_of(c.logits, c.params, history);
    const TokenId expected = distribution.empty() ? -1 : randomness.coupled_pick(distribution, i);
    ASSERT_EQ(chooser.choose(c.logits, c.params, history, {&randomness, i}), expected) << "case " << i;
  }
  EXPECT_GT(plain, 3000);
}

// One logit is far above the others, so that almost every token is ruled out by its noise.
TEST(CoupledChooser, UnlikelyTokensComeAsOftenAsTheyShould) {
  std::vector<float> logits(1000, 0.0f);
  logits[500] = 10.0f;
  logits[700] = -40.0f;
  constexpr int kDraws = 20000;
  const double likeliest = 1 / (1 + 998 * std::exp(-10.0) + std::exp(-50.0));
  int picked = 0;
  CoupledChooser chooser;
  CounterRandomness randomness(5, 0);
  for (int i = 0; i < kDraws; ++i) {
    const TokenId token = chooser.choose(logits, at_temperature(1), {}, {&randomness, i});
    EXPECT_NE(token, 700);
    picked += token == 500 ? 1 : 0;
  }
  const double sigma = std::sqrt(kDraws * likeliest * (1 - likeliest));
  EXPECT_NEAR(picked, kDraws * likeliest, 6 * sigma);
}

}  // namespace
}  // namespace outrider::logits_processor_test
