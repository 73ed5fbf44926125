// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "speculation/acceptance/exact_distribution_test.h"

namespace outrider {
namespace {

int length(const Prefix& prefix) { return static_cast<int>(prefix.size()); }

std::vector<TokenId> likeliest(const Distribution& distribution, size_t count) {
  std::vector<size_t> order(distribution.tokens.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return distribution.probabilities[a] > distribution.probabilities[b];
  });
  order.resize(std::min(order.size(), count));
  std::vector<TokenId> tokens;
  for (const size_t i : order) tokens.push_back(distribution.tokens[i]);
  return tokens;
}

bool is_sampled_at(Drafting drafting, int depth) {
  return drafting == Drafting::kSampled || (drafting == Drafting::kAlternating && depth % 2 == 0);
}

std::vector<TokenId> fixed_children(const Prefix& path, size_t count, size_t vocabulary) {
  std::vector<TokenId> tokens;
  for (size_t i = 0; i < std::min(count, vocabulary); ++i)
    tokens.push_back(static_cast<TokenId>((path.size() + i) % vocabulary));
  return tokens;
}

}  // namespace

ToyGeneration::ToyGeneration(const Scenario& scenario, const SpeculativeSystem& system)
    : scenario_(scenario), system_(system), target_(scenario.target) {
  members_.push_back({&scenario, 0, ToyModel(scenario.draft), TokenTree(), {}});
  for (const ToyDrafter& other : scenario.others)
    members_.push_back({&other, static_cast<int>(members_.size()), ToyModel(other.draft), TokenTree(), {}});
}

Prefix ToyGeneration::run(Randomness& randomness) {
  Prefix output;
  Verdict verdict;
  for (int step = 0; length(output) < scenario_.length; ++step) {
    if (scenario_.steps > 0 && step == scenario_.steps) break;
    draft(output, randomness);
    const auto target_distribution = [&](int node) -> const Distribution& {
      return target_distribution_after(output, node);
    };
    system_.verify(
        {&tree_, target_distribution, kToyPromptLength + length(output), scenario_.rule, &randomness},
        verdict);
    for (const TokenId token : verdict.tokens) {
      if (length(output) < scenario_.length) output.push_back(token);
    }
  }
  return output;
}

void ToyGeneration::add_continuations(const Prefix& output, double weight,
                                      std::map<Prefix, double>& distribution) {
  if (length(output) >= scenario_.length) {
    distribution[output] += weight;
    return;
  }
  const Distribution& next = target_.distribution(output);
  for (size_t i = 0; i < next.tokens.size(); ++i) {
    Prefix extended = output;
    extended.push_back(next.tokens[i]);
    add_continuations(extended, weight * next.probabilities[i], distribution);
  }
}

void ToyGeneration::draft(const Prefix& output, Randomness& randomness) {
  const TokenId pending = output.empty() ? 0 : output.back();
  tree_.reset(pending);
  for (Member& member : members_) {
    member.tree.reset(pending);
    Prefix path = output;
    if (member.drafter->growth) {
      grow_by_policy(member, output, randomness);
    } else {
      grow(member, member.drafter->shape, 0, path, randomness);
    }
    if (members_.size() > 1) system_.merge(tree_, member.tree, member.source);
  }
  if (members_.size() == 1) tree_ = members_[0].tree;
  if (scenario_.prune) scenario_.prune(tree_);
}

// The token after the last one wanted is chosen but not emitted; its distribution has one token, so it does
// not fork the enumeration.
const Distribution& ToyGeneration::target_distribution_after(const Prefix& output, int node) {
  Prefix prefix = output;
  for (int at = node; at != 0; at = tree_.parent(at)) {
    prefix.insert(prefix.begin() + length(output), tree_.token(at));
  }
  static const Distribution kCertain{{0}, {1.0}};
  return length(prefix) >= scenario_.length ? kCertain : target_.distribution(prefix);
}

// Different nodes of one drafter may share draws at one depth, because at most one of them is reached.
uint64_t ToyGeneration::first_draw(const Member& member, int depth) const {
  constexpr uint64_t kMaxDraws = 64;
  constexpr uint64_t kMaxDrafters = 32;
  if (system_.drafters_share_draws) return 0;
  return kMaxDraws * (static_cast<uint64_t>(member.source) + kMaxDrafters * static_cast<uint64_t>(depth));
}

void ToyGeneration::grow(Member& member, const TreeShape& shape, int node, Prefix& path,
                         Randomness& randomness) {
  if (shape.children.empty() || length(path) >= scenario_.length) return;
  TokenTree& tree = member.tree;
  const ToyDrafter& drafter = *member.drafter;
  const Distribution& distribution = member.model.distribution(path);
  const int first = tree.size();
  const size_t count = shape.children.size();
  const bool is_sampled = is_sampled_at(drafter.drafting, tree.depth(node));
  TokenTree drawn;
  if (is_sampled) {
    system_.propose({.tree = drafter.corrupt ? &drawn : &tree,
                     .node = drafter.corrupt ? 0 : node,
                     .distribution = &distribution,
                     .count = static_cast<int>(count),
                     .position = kToyPromptLength + length(path),
                     .rule = scenario_.rule,
                     .kind = drafter.kind,
                     .randomness = &randomness,
                     .first_draw = first_draw(member, tree.depth(node))});
  }
  if (is_sampled && drafter.corrupt) {
    Distribution corrupted = distribution;
    drafter.corrupt(corrupted);
    tree.set_distribution(node, corrupted);
    for (const TokenId token : drawn.tokens().subspan(1)) tree.add(node, token);
  }
  if (!is_sampled) {
    const auto vocabulary = static_cast<size_t>(member.model.vocabulary());
    for (const TokenId token : drafter.drafting == Drafting::kFixed ? fixed_children(path, count, vocabulary)
                                                                    : likeliest(distribution, count)) {
      tree.add(node, token);
    }
  }
  const int end = tree.size();
  for (int child = first; child < end; ++child) {
    path.push_back(tree.token(child));
    grow(member, shape.children[static_cast<size_t>(child - first)], child, path, randomness);
    path.pop_back();
  }
}

void ToyGeneration::grow_by_policy(Member& member, const Prefix& output, Randomness& randomness) {
  const ToyGrowth& growth = *member.drafter->growth;
  GrowthOptions options = growth.options;
  options.draws = &randomness;
  std::vector<TokenId> tokens(static_cast<size_t>(kToyPromptLength), 0);
  tokens.insert(tokens.end(), output.begin(), output.end());
  TokenHistory history;
  for (const TokenId token : output) history.push(token);
  TinyLanguage language(member.drafter->draft.language, member.drafter->draft.vocabulary);
  const bool has_language = static_cast<bool>(member.drafter->draft.language);
  const DraftRequest request{
      .tokens = tokens,
      .prompt_length = static_cast<int>(kToyPromptLength),
      .max_draft_len = std::min(growth.max_draft_len, scenario_.length - length(output)),
      .max_nodes = growth.max_nodes,
      .sampling = &scenario_.draft.params,
      .source = system_.drafters_share_draws ? 0 : member.source,
      .acceptance = scenario_.rule,
      .constraint = has_language ? &language : nullptr,
      .constraint_state = has_language ? language.state_of(output) : 0};
  member.growth.start(options, request, member.tree, history);
  while (!member.growth.frontier().empty()) {
    std::vector<int> frontier(member.growth.frontier().begin(), member.growth.frontier().end());
    member.growth.expand([&](size_t i) {
      Prefix path = output;
      for (int at = frontier[i]; at != 0; at = member.tree.parent(at))
        path.insert(path.begin() + length(output), member.tree.token(at));
      return member.model.logits(path);
    });
  }
}

ExactComparison compare_with_target(const Scenario& scenario, const SpeculativeSystem& system) {
  ToyGeneration generation(scenario, system);
  ForkingRandomness randomness;
  ExactComparison comparison;
  std::map<Prefix, double> outputs;
  while (randomness.next()) {
    const Prefix output = generation.run(randomness);
    outputs[output] += randomness.weight();
    comparison.total_weight += randomness.weight();
    ++comparison.outcomes;
  }
  std::map<Prefix, double> excess;
  for (const auto& [output, weight] : outputs) generation.add_continuations(output, weight, excess);
  generation.add_continuations({}, -1.0, excess);
  for (const auto& [output, weight] : excess) comparison.total_variation += 0.5 * std::abs(weight);
  return comparison;
}

}  // namespace outrider
