// SPDX-License-Identifier: Apache-2.0
#include "speculation/exact_law_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

TokenId ForkingRandomness::coupled_pick(const Distribution& law, int64_t position) {
  return law.tokens[draw_from(law.probabilities, {position, RandomPurpose::kToken, 0})];
}

std::vector<TokenId> ForkingRandomness::coupled_top(const Distribution& law, int64_t position, int count) {
  std::vector<double> remaining = law.probabilities;
  std::vector<TokenId> tokens;
  const size_t kept = std::min(law.tokens.size(), static_cast<size_t>(count));
  for (uint64_t draw = 0; draw < kept; ++draw) {
    const size_t i = draw_from(remaining, {position, RandomPurpose::kToken, draw});
    tokens.push_back(law.tokens[i]);
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

const Distribution& ToyModel::law(const Prefix& prefix) {
  uint64_t code = 1;
  for (const TokenId token : prefix)
    code = code * static_cast<uint64_t>(vocabulary()) + static_cast<uint64_t>(token);
  const auto [entry, is_new] = laws_.try_emplace(code);
  if (!is_new) return entry->second;
  std::vector<float> logits;
  TokenHistory history;
  for (const TokenId token : prefix) history.push(token);
  for (int token = 0; token < vocabulary(); ++token) {
    const auto noise = [&](uint64_t seed) {
      return random_gumbel({seed, code, 0, RandomPurpose::kToken, static_cast<uint64_t>(token)});
    };
    logits.push_back(static_cast<float>((1.0 - options_.other_share) * noise(options_.seed) +
                                        options_.other_share * noise(options_.other_seed)));
  }
  LawBuilder builder;
  entry->second = builder.build(logits, options_.params, history);
  return entry->second;
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

int length(const Prefix& prefix) { return static_cast<int>(prefix.size()); }

std::vector<TokenId> likeliest(const Distribution& law, size_t count) {
  std::vector<size_t> order(law.tokens.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return law.probabilities[a] > law.probabilities[b]; });
  order.resize(std::min(order.size(), count));
  std::vector<TokenId> tokens;
  for (const size_t i : order) tokens.push_back(law.tokens[i]);
  return tokens;
}

}  // namespace

Prefix ToyGeneration::run(Randomness& randomness) {
  Prefix output;
  TokenTree tree;
  Verdict verdict;
  while (length(output) < scenario_.length) {
    tree.reset(output.empty() ? 0 : output.back());
    Prefix path = output;
    grow(scenario_.shape, 0, path, tree, randomness);
    const auto target_law = [&](int node) -> const Distribution& {
      return target_law_after(output, tree, node);
    };
    system_.verify({&tree, target_law, kToyPromptLength + length(output), scenario_.rule, &randomness},
                   verdict);
    for (const TokenId token : verdict.tokens) {
      if (length(output) < scenario_.length) output.push_back(token);
    }
  }
  return output;
}

std::map<Prefix, double> ToyGeneration::target_alone() {
  std::map<Prefix, double> law = {{{}, 1.0}};
  for (int i = 0; i < scenario_.length; ++i) {
    std::map<Prefix, double> longer;
    for (const auto& [prefix, weight] : law) {
      const Distribution& next = target_.law(prefix);
      for (size_t k = 0; k < next.tokens.size(); ++k) {
        Prefix extended = prefix;
        extended.push_back(next.tokens[k]);
        longer[extended] = weight * next.probabilities[k];
      }
    }
    law = std::move(longer);
  }
  return law;
}

bool ToyGeneration::sampled_at(int depth) const {
  return scenario_.drafting == Drafting::kSampled ||
         (scenario_.drafting == Drafting::kAlternating && depth % 2 == 0);
}

// The token after the last one wanted is chosen but not put out: certain, so that it does not fork.
const Distribution& ToyGeneration::target_law_after(const Prefix& output, const TokenTree& tree, int node) {
  Prefix prefix = output;
  for (int at = node; at != 0; at = tree.parent(at)) {
    prefix.insert(prefix.begin() + length(output), tree.token(at));
  }
  static const Distribution kCertain{{0}, {1.0}};
  return length(prefix) >= scenario_.length ? kCertain : target_.law(prefix);
}

std::vector<TokenId> ToyGeneration::chosen_children(const Distribution& law, const Prefix& path,
                                                    size_t count) const {
  if (scenario_.drafting != Drafting::kFixed) return likeliest(law, count);
  std::vector<TokenId> tokens;
  const auto vocabulary = static_cast<size_t>(draft_.vocabulary());
  for (size_t i = 0; i < std::min(count, vocabulary); ++i) {
    tokens.push_back(static_cast<TokenId>((path.size() + i) % vocabulary));
  }
  return tokens;
}

void ToyGeneration::grow(const TreeShape& shape, int node, Prefix& path, TokenTree& tree,
                         Randomness& randomness) {
  if (shape.children.empty() || length(path) >= scenario_.length) return;
  const Distribution& law = draft_.law(path);
  const int first = tree.size();
  const auto count = static_cast<int>(shape.children.size());
  if (sampled_at(tree.depth(node)) && scenario_.corrupt) {
    TokenTree drawn;
    system_.propose({.tree = &drawn,
                     .node = 0,
                     .law = &law,
                     .count = count,
                     .position = kToyPromptLength + length(path),
                     .rule = scenario_.rule,
                     .kind = scenario_.kind,
                     .randomness = &randomness});
    Distribution corrupted = law;
    scenario_.corrupt(corrupted);
    tree.set_law(node, corrupted);
    for (const TokenId token : drawn.tokens().subspan(1)) tree.add(node, token);
  } else if (sampled_at(tree.depth(node))) {
    system_.propose({.tree = &tree,
                     .node = node,
                     .law = &law,
                     .count = count,
                     .position = kToyPromptLength + length(path),
                     .rule = scenario_.rule,
                     .kind = scenario_.kind,
                     .randomness = &randomness});
  } else {
    for (const TokenId token : chosen_children(law, path, shape.children.size())) tree.add(node, token);
  }
  const int end = tree.size();
  for (int child = first; child < end; ++child) {
    path.push_back(tree.token(child));
    grow(shape.children[static_cast<size_t>(child - first)], child, path, tree, randomness);
    path.pop_back();
  }
}

ExactComparison compare_with_target(const Scenario& scenario, const SpeculativeSystem& system) {
  ToyGeneration generation(scenario, system);
  ForkingRandomness randomness;
  ExactComparison comparison;
  std::map<Prefix, double> excess = generation.target_alone();
  for (auto& [output, weight] : excess) weight = -weight;
  while (randomness.next()) {
    const Prefix output = generation.run(randomness);
    excess[output] += randomness.weight();
    comparison.total_weight += randomness.weight();
    ++comparison.outcomes;
  }
  for (const auto& [output, weight] : excess) comparison.total_variation += 0.5 * std::abs(weight);
  return comparison;
}

namespace {

TEST(ForkingRandomness, EnumeratesIndependentDraws) {
  ForkingRandomness randomness;
  std::map<std::pair<size_t, bool>, double> law;
  const std::vector<double> weights = {1, 0, 3};
  while (randomness.next()) {
    const size_t index = randomness.categorical(weights, 0, RandomPurpose::kDraft, 0);
    const bool passed = randomness.bernoulli(0.2, 0, 0);
    law[{index, passed}] += randomness.weight();
  }
  ASSERT_EQ(law.size(), 4u);
  EXPECT_NEAR((law[{0, true}]), 0.05, 1e-15);
  EXPECT_NEAR((law[{2, true}]), 0.15, 1e-15);
  EXPECT_NEAR((law[{2, false}]), 0.6, 1e-15);
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
