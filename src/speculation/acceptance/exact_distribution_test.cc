// SPDX-License-Identifier: Apache-2.0
#include "speculation/acceptance/exact_distribution_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace outrider {

bool ForkingRandomness::next() {
  if (started_) {
    while (!forks_.empty() && forks_.back().taken + 1 == forks_.back().cells.size()) forks_.pop_back();
    if (forks_.empty()) return false;
    ++forks_.back().taken;
  }
  started_ = true;
  replayed_ = 0;
  weight_ = 1.0;
  intervals_.clear();
  return true;
}

ForkingRandomness::Interval& ForkingRandomness::interval_of(const Key& key) {
  const auto found = std::find_if(intervals_.begin(), intervals_.end(),
                                  [&](const auto& entry) { return entry.first == key; });
  if (found != intervals_.end()) return found->second;
  return intervals_.emplace_back(key, Interval{}).second;
}

size_t ForkingRandomness::draw_from(std::span<const double> weights, const Key& key) {
  constexpr double kRoundingSliver = 1e-15;
  Interval& interval = interval_of(key);
  if (replayed_ == forks_.size()) {
    Fork fork;
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    double passed = 0.0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double low = std::max(interval.low, passed / sum);
      passed += weights[i];
      const double high = std::min(interval.high, passed / sum);
      if (weights[i] > 0.0 && high - low > kRoundingSliver) fork.cells.push_back({i, {low, high}});
    }
    if (fork.cells.empty()) fork.cells.push_back({inverse_cdf(weights, interval.low), interval});
    forks_.push_back(std::move(fork));
  }
  const Fork& fork = forks_[replayed_++];
  const Cell& cell = fork.cells[fork.taken];
  weight_ *= cell.part.width() / interval.width();
  interval = cell.part;
  return cell.index;
}

TokenId ForkingRandomness::coupled_pick(const Distribution& distribution, int64_t position) {
  return distribution.tokens[draw_from(distribution.probabilities, {position, RandomPurpose::kToken, 0})];
}

std::vector<TokenId> ForkingRandomness::coupled_top(const Distribution& distribution, int64_t position,
                                                    int count) {
  std::vector<double> remaining = distribution.probabilities;
  std::vector<TokenId> tokens;
  const size_t kept = std::min(distribution.tokens.size(), static_cast<size_t>(count));
  for (uint64_t draw = 0; draw < kept; ++draw) {
    const size_t i = draw_from(remaining, {position, RandomPurpose::kToken, draw});
    tokens.push_back(distribution.tokens[i]);
    remaining[i] = 0.0;
  }
  return tokens;
}

size_t ForkingRandomness::categorical(std::span<const double> weights, int64_t position,
                                      RandomPurpose purpose, uint64_t draw) {
  return draw_from(weights, {position, purpose, draw});
}

bool ForkingRandomness::bernoulli(double p, int64_t position, uint64_t draw) {
  const double passing = std::min(p, 1.0);
  const double weights[] = {passing, 1.0 - passing};
  return draw_from(weights, {position, RandomPurpose::kAccept, draw}) == 0;
}

const ToyModel::Output& ToyModel::after(const Prefix& prefix) {
  uint64_t code = 1;
  for (const TokenId token : prefix)
    code = code * static_cast<uint64_t>(vocabulary()) + static_cast<uint64_t>(token);
  const auto [entry, is_new] = outputs_.try_emplace(code);
  Output& output = entry->second;
  if (!is_new) return output;
  TokenHistory history;
  for (const TokenId token : prefix) history.push(token);
  for (int token = 0; token < vocabulary(); ++token) {
    const auto noise = [&](uint64_t seed) {
      return random_gumbel({seed, code, 0, RandomPurpose::kToken, static_cast<uint64_t>(token)});
    };
    output.logits.push_back(static_cast<float>((1.0 - options_.other_share) * noise(options_.seed) +
                                               options_.other_share * noise(options_.other_seed)));
  }
  std::vector<float> masked = output.logits;
  for (int token = 0; token < vocabulary() && options_.language; ++token) {
    if (!options_.language(prefix, token))
      masked[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
  }
  LogitsProcessor processor;
  output.distribution = processor.build(masked, options_.params, history);
  return output;
}

TokenConstraint::State TinyLanguage::state_of(const Prefix& prefix) {
  const auto [found, is_new] = states_.try_emplace(prefix, static_cast<State>(prefixes_.size()));
  if (is_new) prefixes_.push_back(prefix);
  return found->second;
}

TokenConstraint::State TinyLanguage::advance(State state, TokenId token) {
  Prefix prefix = prefixes_[static_cast<size_t>(state)];
  if (!language_(prefix, token)) return kDead;
  prefix.push_back(token);
  return state_of(prefix);
}

std::span<const uint64_t> TinyLanguage::allowed(State state) {
  word_ = 0;
  for (int token = 0; token < vocabulary_; ++token) {
    if (language_(prefixes_[static_cast<size_t>(state)], token)) word_ |= uint64_t{1} << token;
  }
  return {&word_, 1};
}

TreeShape uniform_shape(std::span<const int> widths) {
  if (widths.empty()) return {};
  return {std::vector<TreeShape>(static_cast<size_t>(widths[0]), uniform_shape(widths.subspan(1)))};
}

std::vector<TreeShape> all_shapes(int drafted) {
  if (drafted == 0) return {{}};
  std::vector<TreeShape> shapes;  // the first child's subtree has `below` nodes, the other children the rest
  for (int below = 0; below < drafted; ++below) {
    for (const TreeShape& first : all_shapes(below)) {
      for (const TreeShape& rest : all_shapes(drafted - 1 - below)) {
        TreeShape shape{{first}};
        shape.children.insert(shape.children.end(), rest.children.begin(), rest.children.end());
        shapes.push_back(shape);
      }
    }
  }
  return shapes;
}

namespace {

TEST(ForkingRandomness, EnumeratesIndependentDraws) {
  ForkingRandomness randomness;
  std::map<std::pair<size_t, bool>, double> distribution;
  const std::vector<double> weights = {1, 0, 3};
  while (randomness.next()) {
    const size_t index = randomness.categorical(weights, 0, RandomPurpose::kDraft, 0);
    const bool passed = randomness.bernoulli(0.2, 0, 0);
    distribution[{index, passed}] += randomness.weight();
  }
  ASSERT_EQ(distribution.size(), 4u);
  EXPECT_NEAR((distribution[{0, true}]), 0.05, 1e-15);
  EXPECT_NEAR((distribution[{2, true}]), 0.15, 1e-15);
  EXPECT_NEAR((distribution[{2, false}]), 0.6, 1e-15);
}

TEST(ForkingRandomness, DrawsOfOneKeyShareTheirUniform) {
  ForkingRandomness randomness;
  double both = 0.0;
  double only_second = 0.0;
  while (randomness.next()) {
    const bool first = randomness.bernoulli(0.25, 0, 0);
    const bool second = randomness.bernoulli(0.5, 0, 0);
    ASSERT_TRUE(second || !first);
    if (first && second) both += randomness.weight();
    if (!first && second) only_second += randomness.weight();
  }
  EXPECT_NEAR(both, 0.25, 1e-15);
  EXPECT_NEAR(only_second, 0.25, 1e-15);
}

TEST(AllShapes, CountsOrderedTrees) {
  EXPECT_EQ(all_shapes(1).size(), 1u);
  EXPECT_EQ(all_shapes(3).size(), 5u);
  EXPECT_EQ(all_shapes(5).size(), 42u);
}

}  // namespace
}  // namespace outrider
