// SPDX-License-Identifier: Apache-2.0
// The enumeration of exact_distribution_test.h finds every known mistake in acceptance and drafting. The
// mistakes are planted in a second implementation of the rules, which is exact without a bug, like the real
// one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "speculation/acceptance/exact_distribution_test.h"

namespace outrider::planted_bugs_test {
namespace {

enum class Bug {
  kNone,
  // Acceptance under the rejection rule.
  kAbsoluteResidual,                       // |p - q|
  kFlippedResidual,                        // max(0, q - p)
  kBanOnlyResidual,                        // p without the token where p - q is due
  kRecoversFromTarget,                     // p itself after rejections
  kStaleTargetDistribution,                // later siblings are tested against the first p
  kDraftDistributionNotRenormalised,       // the rejected token is removed from q, which is not renormalised
  kRejectedTokenStaysInDraftDistribution,  // q as if drawn with replacement
  kRatioIgnoresDraftDistribution,          // sampled children pass with p, residual p - q
  kInvertedRatio,                          // q / p
  kParentRow,                              // children are tested against the distribution one row up
  kBonusFromParentRow,                     // the last token comes from the row one up
  kBonusFromDraft,                         // the last token comes from q
  kFirstChildUnverified,
  kChosenTokenStays,  // p keeps the rejected chosen token
  kChosenNotRenormalised,
  kAcceptDrawReused,          // one uniform for all siblings
  kResidualSharesAcceptDraw,  // one uniform for acceptance and residual
  // Acceptance under the coupled rule.
  kCoupledAcceptsFirstChild,
  kCoupledIgnoresDepth,         // the noise of the root's position all along the path
  kCoupledDrawsAgain,           // a fresh token when no child equals the pick
  kCoupledDrawsAgainAmongRest,  // a fresh token that is none of the children
  // Drafting.
  kArgmaxAsSampled,
  kTopAsSampled,
  kSharpenedDistribution,  // the stated distribution is not the one drawn from
  kDropsUnlikelyTokens,
  kSortsSiblings,
  kDraftSharesAcceptDraw,
};

constexpr std::pair<Bug, const char*> kBugs[] = {
    {Bug::kAbsoluteResidual, "AbsoluteResidual"},
    {Bug::kFlippedResidual, "FlippedResidual"},
    {Bug::kBanOnlyResidual, "BanOnlyResidual"},
    {Bug::kRecoversFromTarget, "RecoversFromTarget"},
    {Bug::kStaleTargetDistribution, "StaleTargetDistribution"},
    {Bug::kDraftDistributionNotRenormalised, "DraftDistributionNotRenormalised"},
    {Bug::kRejectedTokenStaysInDraftDistribution, "RejectedTokenStaysInDraftDistribution"},
    {Bug::kRatioIgnoresDraftDistribution, "RatioIgnoresDraftDistribution"},
    {Bug::kInvertedRatio, "InvertedRatio"},
    {Bug::kParentRow, "ParentRow"},
    {Bug::kBonusFromParentRow, "BonusFromParentRow"},
    {Bug::kBonusFromDraft, "BonusFromDraft"},
    {Bug::kFirstChildUnverified, "FirstChildUnverified"},
    {Bug::kChosenTokenStays, "ChosenTokenStays"},
    {Bug::kChosenNotRenormalised, "ChosenNotRenormalised"},
    {Bug::kAcceptDrawReused, "AcceptDrawReused"},
    {Bug::kResidualSharesAcceptDraw, "ResidualSharesAcceptDraw"},
    {Bug::kCoupledAcceptsFirstChild, "CoupledAcceptsFirstChild"},
    {Bug::kCoupledIgnoresDepth, "CoupledIgnoresDepth"},
    {Bug::kCoupledDrawsAgain, "CoupledDrawsAgain"},
    {Bug::kCoupledDrawsAgainAmongRest, "CoupledDrawsAgainAmongRest"},
    {Bug::kArgmaxAsSampled, "ArgmaxAsSampled"},
    {Bug::kTopAsSampled, "TopAsSampled"},
    {Bug::kSharpenedDistribution, "SharpenedDistribution"},
    {Bug::kDropsUnlikelyTokens, "DropsUnlikelyTokens"},
    {Bug::kSortsSiblings, "SortsSiblings"},
    {Bug::kDraftSharesAcceptDraw, "DraftSharesAcceptDraw"},
};

using Probabilities = std::map<TokenId, double>;

Probabilities to_map(const Distribution& distribution) {
  Probabilities probabilities;
  for (size_t i = 0; i < distribution.tokens.size(); ++i)
    probabilities[distribution.tokens[i]] = distribution.probabilities[i];
  return probabilities;
}

Distribution to_distribution(const Probabilities& probabilities) {
  Distribution distribution;
  for (const auto& [token, probability] : probabilities) {
    distribution.tokens.push_back(token);
    distribution.probabilities.push_back(probability);
  }
  return distribution;
}

Probabilities normalised(Probabilities distribution) {
  double sum = 0.0;
  for (const auto& [token, probability] : distribution) sum += probability;
  for (auto& [token, probability] : distribution) probability = sum > 0.0 ? probability / sum : probability;
  return distribution;
}

bool has_mass(const Probabilities& distribution) {
  return std::any_of(distribution.begin(), distribution.end(),
                     [](const auto& entry) { return entry.second > 0.0; });
}

double at(const Probabilities& distribution, TokenId token) {
  const auto found = distribution.find(token);
  return found == distribution.end() ? 0.0 : found->second;
}

class BuggyVerifier {
 public:
  BuggyVerifier(Bug bug, const VerifyArgs& args) : bug_(bug), args_(args), tree_(*args.tree) {}

  std::vector<TokenId> run() {
    std::vector<TokenId> tokens;
    Probabilities above;
    for (int node = 0; node >= 0;) {
      const Probabilities p = to_map(args_.target_distribution(node));
      const auto [token, child] =
          args_.rule == AcceptanceRule::kCoupled ? coupled(node, p) : rejection(node, p, above);
      tokens.push_back(token);
      above = p;
      node = child;
    }
    return tokens;
  }

 private:
  using Choice = std::pair<TokenId, int>;

  std::vector<int> children(int node) const {
    std::vector<int> found;
    for (int i = 1; i < tree_.size(); ++i) {
      if (tree_.parent(i) == node) found.push_back(i);
    }
    return found;
  }

  TokenId draw(const Probabilities& probabilities, int64_t position, RandomPurpose purpose) {
    const Distribution distribution = to_distribution(probabilities);
    return distribution
        .tokens[args_.randomness->categorical(distribution.probabilities, position, purpose, 0)];
  }

  Choice coupled(int node, const Probabilities& p) {
    const int64_t here = args_.position + tree_.depth(node);
    const int64_t position = bug_ == Bug::kCoupledIgnoresDepth ? args_.position : here;
    const TokenId pick = args_.randomness->coupled_pick(to_distribution(p), position);
    Probabilities rest = p;
    for (const int child : children(node)) {
      const TokenId token = tree_.token(child);
      if (token == pick || bug_ == Bug::kCoupledAcceptsFirstChild) return {token, child};
      rest[token] = 0.0;
    }
    if (bug_ == Bug::kCoupledDrawsAgain) return {draw(p, here, RandomPurpose::kResidual), -1};
    if (bug_ == Bug::kCoupledDrawsAgainAmongRest) return {draw(rest, here, RandomPurpose::kResidual), -1};
    return {pick, -1};
  }

  Choice bonus(int node, const Probabilities& p, const Probabilities& above) {
    const int64_t position = args_.position + tree_.depth(node);
    const bool below_sampled = node > 0 && tree_.children_kind(tree_.parent(node)) == ChildrenKind::kSampled;
    Probabilities distribution = p;
    if (bug_ == Bug::kBonusFromParentRow && node > 0) distribution = above;
    if (bug_ == Bug::kBonusFromDraft && below_sampled)
      distribution = to_map(tree_.distribution(tree_.parent(node)));
    return {draw(distribution, position, RandomPurpose::kToken), -1};
  }

  Choice rejection(int node, const Probabilities& target, const Probabilities& above) {
    const std::vector<int> drafted = children(node);
    if (drafted.empty()) return bonus(node, target, above);
    const int64_t position = args_.position + tree_.depth(node);
    const bool sampled = tree_.children_kind(node) == ChildrenKind::kSampled;
    const Probabilities first = bug_ == Bug::kParentRow && node > 0 ? above : target;
    Probabilities p = first;
    Probabilities q = sampled ? to_map(tree_.distribution(node)) : Probabilities{};
    uint64_t tested = 0;
    for (const int child : drafted) {
      const TokenId token = tree_.token(child);
      const double pass =
          pass_probability(bug_ == Bug::kStaleTargetDistribution ? first : p, q, token, sampled);
      if (bug_ == Bug::kFirstChildUnverified && tested == 0) return {token, child};
      const uint64_t number = bug_ == Bug::kAcceptDrawReused ? 0 : tested;
      ++tested;
      if (args_.randomness->bernoulli(pass, position, number)) return {token, child};
      sampled ? leave_sampled(p, q, token) : leave_chosen(p, token);
    }
    const bool shares = bug_ == Bug::kResidualSharesAcceptDraw;
    const Probabilities& last = bug_ == Bug::kRecoversFromTarget || !has_mass(p) ? target : p;
    return {draw(last, position, shares ? RandomPurpose::kAccept : RandomPurpose::kResidual), -1};
  }

  double pass_probability(const Probabilities& p, const Probabilities& q, TokenId token, bool sampled) const {
    if (!sampled || bug_ == Bug::kRatioIgnoresDraftDistribution) return at(p, token);
    return bug_ == Bug::kInvertedRatio ? at(q, token) / at(p, token) : at(p, token) / at(q, token);
  }

  void leave_sampled(Probabilities& p, Probabilities& q, TokenId token) const {
    Probabilities residual = p;
    for (auto& [id, mass] : residual) {
      const double difference = mass - at(q, id);
      mass = std::max(0.0, difference);
      if (bug_ == Bug::kAbsoluteResidual) mass = std::abs(difference);
      if (bug_ == Bug::kFlippedResidual) mass = std::max(0.0, -difference);
      if (bug_ == Bug::kBanOnlyResidual) mass = id == token ? 0.0 : at(p, id);
    }
    if (has_mass(residual)) p = normalised(residual);
    if (bug_ == Bug::kRejectedTokenStaysInDraftDistribution) return;
    q[token] = 0.0;
    if (bug_ != Bug::kDraftDistributionNotRenormalised) q = normalised(q);
  }

  void leave_chosen(Probabilities& p, TokenId token) const {
    if (bug_ == Bug::kChosenTokenStays) return;
    p[token] = 0.0;
    if (bug_ != Bug::kChosenNotRenormalised) p = normalised(p);
  }

  Bug bug_;
  const VerifyArgs& args_;
  const TokenTree& tree_;
};

std::vector<TokenId> drawn_tokens(const ProposalArgs& args) {
  TokenTree scratch;
  ProposalArgs into_scratch = args;
  into_scratch.tree = &scratch;
  into_scratch.node = 0;
  propose(into_scratch);
  return {scratch.tokens().begin() + 1, scratch.tokens().end()};
}

std::vector<TokenId> tokens_to_add(Bug bug, const ProposalArgs& args) {
  const Distribution& q = *args.distribution;
  const Probabilities by_token = to_map(q);
  const auto likelier = [&](TokenId a, TokenId b) { return at(by_token, a) > at(by_token, b); };
  if (bug == Bug::kDraftSharesAcceptDraw) {
    return {
        q.tokens[args.randomness->categorical(q.probabilities, args.position, RandomPurpose::kAccept, 0)]};
  }
  if (bug == Bug::kArgmaxAsSampled || bug == Bug::kTopAsSampled) {
    std::vector<TokenId> tokens = q.tokens;
    std::stable_sort(tokens.begin(), tokens.end(), likelier);
    const size_t count = bug == Bug::kArgmaxAsSampled ? 1 : static_cast<size_t>(args.count);
    tokens.resize(std::min(tokens.size(), count));
    return tokens;
  }
  std::vector<TokenId> tokens = drawn_tokens(args);
  if (bug == Bug::kSortsSiblings) std::stable_sort(tokens.begin(), tokens.end(), likelier);
  if (bug == Bug::kDropsUnlikelyTokens) {
    std::erase_if(tokens, [&](TokenId token) { return at(by_token, token) < 0.25; });
  }
  return tokens;
}

int propose_with(Bug bug, const ProposalArgs& args) {
  if (args.rule == AcceptanceRule::kCoupled) return propose(args);
  const std::vector<TokenId> tokens = tokens_to_add(bug, args);
  Probabilities stated = to_map(*args.distribution);
  if (bug == Bug::kSharpenedDistribution) {
    for (auto& [token, mass] : stated) mass *= mass;
    stated = normalised(stated);
  }
  args.tree->set_distribution(args.node, to_distribution(stated));
  for (const TokenId token : tokens) args.tree->add(args.node, token);
  return static_cast<int>(tokens.size());
}

// Draws with replacement and skips repeats, which has the same distribution as draws without replacement and
// is therefore no bug.
int propose_skipping_repeats(const ProposalArgs& args) {
  const int before = args.tree->size();
  TokenTree drawn;
  for (int draw = 0; draw < args.count; ++draw) {
    const size_t i = args.randomness->categorical(args.distribution->probabilities, args.position,
                                                  RandomPurpose::kDraft, static_cast<uint64_t>(draw));
    drawn.add(0, args.distribution->tokens[i]);
  }
  args.tree->set_distribution(args.node, *args.distribution);
  for (const TokenId token : drawn.tokens().subspan(1)) args.tree->add(args.node, token);
  return args.tree->size() - before;
}

SpeculativeSystem system_with(Bug bug) {
  SpeculativeSystem system;
  system.propose = [bug](const ProposalArgs& args) { return propose_with(bug, args); };
  system.verify = [bug](const VerifyArgs& args, Verdict& verdict) {
    verdict.clear();
    verdict.tokens = BuggyVerifier(bug, args).run();
  };
  return system;
}

std::vector<Scenario> scenarios() {
  struct Size {
    std::vector<int> widths;
    int vocabulary;
    int length;
  };
  const Size sizes[] = {{{1}, 3, 2}, {{2}, 4, 1}, {{3}, 4, 1}, {{1, 1}, 3, 3}, {{2, 1}, 3, 2}};
  std::vector<Scenario> all;
  for (const Size& size : sizes) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
      for (const Drafting drafting : {Drafting::kSampled, Drafting::kLikeliest, Drafting::kAlternating}) {
        for (const AcceptanceRule rule : {AcceptanceRule::kRejection, AcceptanceRule::kCoupled}) {
          Scenario& scenario = all.emplace_back();
          scenario.target.vocabulary = scenario.draft.vocabulary = size.vocabulary;
          scenario.target.seed = scenario.draft.seed = seed;
          scenario.target.params.temperature = scenario.draft.params.temperature = 1.0;
          scenario.draft.other_seed = seed + 50;
          scenario.draft.other_share = 0.6;
          scenario.length = size.length;
          scenario.shape = uniform_shape(size.widths);
          scenario.drafting = drafting;
          scenario.rule = rule;
        }
      }
    }
  }
  return all;
}

constexpr double kFound = 1e-6;
constexpr double kExact = 1e-12;

// The total variation of the first scenario that shows a bug, else the largest of all scenarios.
double total_variation(const SpeculativeSystem& system) {
  double largest = 0.0;
  for (const Scenario& scenario : scenarios()) {
    largest = std::max(largest, compare_with_target(scenario, system).total_variation);
    if (largest > kFound) break;
  }
  return largest;
}

class PlantedBug : public testing::TestWithParam<std::pair<Bug, const char*>> {};

TEST_P(PlantedBug, IsFound) {
  const double found = total_variation(system_with(GetParam().first));
  RecordProperty("total_variation", std::to_string(found));
  EXPECT_GT(found, kFound);
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBug, testing::ValuesIn(kBugs),
                         [](const auto& bug) { return std::string(bug.param.second); });

TEST(PlantedBugs, WithoutABugTheSameScenariosAreExact) {
  EXPECT_LE(total_variation(SpeculativeSystem{}), kExact);
  EXPECT_LE(total_variation(system_with(Bug::kNone)), kExact);
}

TEST(PlantedBugs, SkippingRepeatedDrawsIsNotABug) {
  SpeculativeSystem system;
  system.propose = propose_skipping_repeats;
  EXPECT_LE(total_variation(system), kExact);
}

}  // namespace
}  // namespace outrider::planted_bugs_test
