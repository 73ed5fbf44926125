// SPDX-License-Identifier: Apache-2.0
#include "drafters/combined/combined.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>

#include "drafters/registry.h"

namespace outrider {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Le;

using Script = std::function<Status(const DraftRequest&, TokenTree&)>;

// Drafts as it is told and notes what it is asked.
class ScriptedDrafter final : public Drafter {
 public:
  ScriptedDrafter(std::string name, Script script) : script_(std::move(script)) {
    traits_.name = std::move(name);
  }

  const DrafterTraits& traits() const override { return traits_; }
  void begin(uint64_t sequence, std::span<const TokenId>, uint64_t) override { begun.push_back(sequence); }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      asked_nodes.push_back(requests[i].max_nodes);
      OUTRIDER_RETURN_IF_ERROR(script_(requests[i], trees[i]));
    }
    return {};
  }
  void observe(uint64_t sequence, const TokenTree&, const Verdict&) override { observed.push_back(sequence); }
  void end(uint64_t sequence) override { ended.push_back(sequence); }

  std::vector<int> asked_nodes;
  std::vector<uint64_t> begun, observed, ended;

 private:
  DrafterTraits traits_;
  Script script_;
};

struct Node {
  TokenId token;
  double probability;
};

// A chain, as far as the limits go.
Script chain(std::vector<Node> nodes) {
  return [nodes](const DraftRequest& request, TokenTree& tree) -> Status {
    for (int i = 0; i < std::min<int>(request.max_nodes, std::ssize(nodes)); ++i) {
      const Node& node = nodes[static_cast<size_t>(i)];
      tree.add(i, node.token, node.probability);
    }
    return {};
  };
}

std::shared_ptr<ScriptedDrafter> scripted(std::string name, Script script) {
  return std::make_shared<ScriptedDrafter>(std::move(name), std::move(script));
}

// One sequence that drafts with several drafters.
class Combination {
 public:
  explicit Combination(std::vector<std::shared_ptr<ScriptedDrafter>> members, ThreadPool* team = nullptr)
      : combined_(combine_drafters("all", {.drafters = {members.begin(), members.end()}, .team = team})) {
    request.sampling = &sampling;
    request.max_draft_len = 8;
    request.max_nodes = 16;
    request.sequence = 3;
    request.tokens = tokens_;
  }

  Status draft() {
    tree.reset(tokens_.back());
    return combined_->draft({&request, 1}, {&tree, 1});
  }

  // The target took these tokens.
  void observe(std::vector<TokenId> tokens) {
    Verdict verdict;
    verdict.tokens = std::move(tokens);
    combined_->observe(request.sequence, tree, verdict);
  }

  Drafter& drafter() { return *combined_; }

  SamplingParams sampling;
  DraftRequest request;
  TokenTree tree;

 private:
  std::vector<TokenId> tokens_ = {7, 9};
  std::shared_ptr<Drafter> combined_;
};

TEST(Combined, EveryPathStandsOnceAndKnowsItsDrafters) {
  Combination both({scripted("A", chain({{1, 0.8}, {2, 0.7}})), scripted("B", chain({{1, 0.6}, {3, 0.5}}))});
  ASSERT_TRUE(both.draft().ok());
  EXPECT_THAT(both.tree.tokens(), ElementsAre(9, 1, 2, 3));
  EXPECT_THAT(both.tree.parents(), ElementsAre(-1, 0, 1, 1));
  EXPECT_EQ(both.tree.sources(1), 0b11u);
  EXPECT_EQ(both.tree.sources(2), 0b01u);
  EXPECT_EQ(both.tree.sources(3), 0b10u);
  EXPECT_THAT(both.drafter().traits().sources, ElementsAre("A", "B"));
  EXPECT_EQ(both.drafter().traits().name, "all");
}

TEST(Combined, WhereDraftersAgreeTheyErrIndependently) {
  Combination both({scripted("A", chain({{1, 0.4}, {2, 0.3}})), scripted("B", chain({{1, 0.5}}))});
  ASSERT_TRUE(both.draft().ok());
  EXPECT_DOUBLE_EQ(both.tree.probability(1), 0.7);  // 1 - .6 * .5
  EXPECT_DOUBLE_EQ(both.tree.probability(2), 0.3);
}

TEST(Combined, ProbabilitiesBecomeWhatTheyProvedToBeWorth) {
  Combination both({scripted("A", chain({{1, 0.9}})), scripted("B", chain({{2, 0.9}}))});
  for (int step = 0; step < 60; ++step) {
    ASSERT_TRUE(both.draft().ok());
    both.observe({2});
  }
  ASSERT_TRUE(both.draft().ok());
  for (int node = 1; node <= 2; ++node) {
    const bool is_accepted = both.tree.token(node) == 2;
    EXPECT_NEAR(both.tree.probability(node), is_accepted ? 1.0 : 0.0, is_accepted ? 0.05 : 0.15);
  }
}

TEST(Combined, WhereNodesMayGoAllDraftInFullAndTheLikeliestStay) {
  const auto a = scripted("A", chain({{1, 0.9}, {2, 0.2}, {3, 0.9}}));
  const auto b = scripted("B", chain({{4, 0.8}, {5, 0.8}, {6, 0.1}}));
  Combination both({a, b});
  both.request.max_nodes = 3;
  both.sampling.temperature = 1.0;
  ASSERT_TRUE(both.draft().ok());
  EXPECT_THAT(a->asked_nodes, ElementsAre(3));
  EXPECT_THAT(b->asked_nodes, ElementsAre(3));
  EXPECT_THAT(both.tree.tokens(), ElementsAre(9, 1, 4, 5));
}

// Draws as many children as it may, each from its node's distribution.
Script drawing(TokenId first) {
  return [first](const DraftRequest& request, TokenTree& tree) -> Status {
    int node = 0;
    for (int i = 0; i < request.max_nodes; ++i) {
      tree.set_distribution(node, {.tokens = {first, first + 1}, .probabilities = {0.5, 0.5}});
      node = tree.add(node, first + i % 2, 0.01);
    }
    return {};
  };
}

TEST(Combined, UnderRejectionNoDrawnNodeIsDropped) {
  for (int nodes = 1; nodes <= 16; ++nodes) {
    const auto a = scripted("A", drawing(10));
    const auto b = scripted("B", drawing(11));  // shares tokens with A
    const auto c = scripted("C", drawing(20));
    Combination all({a, b, c});
    all.request.acceptance = AcceptanceRule::kRejection;
    all.request.max_nodes = nodes;
    all.sampling.temperature = 0.5;
    ASSERT_TRUE(all.draft().ok());
    int asked = 0;
    for (const auto& member : {a, b, c}) {
      ASSERT_LE(member->asked_nodes.size(), 1u);
      asked += member->asked_nodes.empty() ? 0 : member->asked_nodes[0];
    }
    EXPECT_EQ(asked, nodes);
    EXPECT_EQ(std::ssize(all.tree.proposals()), nodes);
    for (const Proposal& proposal : all.tree.proposals())
      EXPECT_GE(proposal.distribution, 0) << nodes << " nodes";
  }
}

TEST(Combined, MostNodesGoToWhoMakesMostOfThem) {
  const auto a = scripted("A", chain({{1, 0.5}, {1, 0.5}, {1, 0.5}, {1, 0.5}, {1, 0.5}, {1, 0.5}}));
  const auto b = scripted("B", chain({{2, 0.5}, {2, 0.5}, {2, 0.5}, {2, 0.5}, {2, 0.5}, {2, 0.5}}));
  Combination both({a, b});
  both.request.acceptance = AcceptanceRule::kRejection;
  both.request.max_nodes = 6;
  both.sampling.temperature = 1.0;
  for (int step = 0; step < 60; ++step) {
    ASSERT_TRUE(both.draft().ok());
    both.observe({2, 2, 2, 2, 2, 2, 5});
  }
  EXPECT_EQ(a->asked_nodes.front(), 3);
  EXPECT_EQ(b->asked_nodes.front(), 3);
  EXPECT_EQ(a->asked_nodes.back(), 1);  // one each, come what may
  EXPECT_EQ(b->asked_nodes.back(), 5);
}

TEST(Combined, WhoFailsIsLeftOut) {
  ThreadPool team(2);
  const std::vector<Script> failures = {
      [](const DraftRequest&, TokenTree& tree) -> Status {
        tree.add(0, 5);
        return input_error("no");
      },
      [](const DraftRequest&, TokenTree& tree) -> Status {
        tree.add(0, 5);
        throw std::runtime_error("no");
      },
      [](const DraftRequest&, TokenTree&) -> Status { throw 7; },
  };
  for (const Script& failure : failures) {
    for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &team}) {
      for (const bool first : {true, false}) {
        auto good = scripted("good", chain({{1, 0.5}}));
        auto bad = scripted("bad", failure);
        Combination both({first ? bad : good, first ? good : bad}, pool);
        for (int step = 0; step < 3; ++step) {
          ASSERT_TRUE(both.draft().ok());
          EXPECT_THAT(both.tree.tokens(), ElementsAre(9, 1));
          both.observe({1, 4});
        }
        EXPECT_THAT(good->observed, ElementsAre(3, 3, 3));
        EXPECT_THAT(bad->observed, ElementsAre(3, 3, 3));
      }
    }
  }
}

TEST(Combined, WhereAllFailNothingIsDrafted) {
  const auto failing = [](std::string why) {
    return [why](const DraftRequest&, TokenTree&) -> Status { return input_error(why); };
  };
  Combination both({scripted("A", failing("first")), scripted("B", failing("second"))});
  const Status status = both.draft();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "first");
  EXPECT_EQ(both.tree.drafted(), 0);
}

std::vector<int> steps_asked(double rate) {
  const auto cheap = scripted("cheap", chain({{1, 0.9}, {1, 0.9}}));
  const auto slow = scripted("slow", [](const DraftRequest& request, TokenTree& tree) {
    std::this_thread::sleep_for(std::chrono::milliseconds(request.rate > 0.0 ? 20 : 1));
    return chain({{2, 0.9}})(request, tree);
  });
  Combination both({slow, cheap});
  both.request.rate = rate;
  std::vector<int> asked;
  for (int step = 0; step < 70; ++step) {
    const size_t before = slow->asked_nodes.size();
    EXPECT_TRUE(both.draft().ok());
    if (slow->asked_nodes.size() > before) asked.push_back(step);
    both.observe({1, 1, 3});
  }
  return asked;
}

TEST(Combined, WhoCostsMoreThanItBringsIsAskedNowAndThen) {
  const std::vector<int> asked = steps_asked(1.0);
  ASSERT_GE(asked.size(), 4u);
  EXPECT_LE(asked.size(), 8u);
  std::vector<int> gaps;
  for (size_t i = 1; i < asked.size(); ++i) gaps.push_back(asked[i] - asked[i - 1]);
  EXPECT_THAT(gaps, Each(Le(16)));
}

// A drafter that costs more than it brings, beside one that often has nothing to propose.
class SlowAndUseless {
 public:
  // Drafts that it makes in the first steps of a sequence, none of which is accepted.
  size_t asked_in(uint64_t sequence, int steps) {
    both_.request.sequence = sequence;
    const size_t before = slow_->asked_nodes.size();
    for (int step = 0; step < steps; ++step) {
      EXPECT_TRUE(both_.draft().ok());
      both_.observe({3});
    }
    return slow_->asked_nodes.size() - before;
  }
  Combination& both() { return both_; }

 private:
  std::shared_ptr<ScriptedDrafter> slow_ = scripted("slow", [](const DraftRequest& request, TokenTree& tree) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return chain({{2, 0.9}})(request, tree);
  });
  Combination both_{{scripted("silent", chain({})), slow_}};
};

TEST(Combined, WhoCostsMoreThanItBringsIsLeftOutWhereOthersDraftNothing) {
  SlowAndUseless drafters;
  drafters.both().request.rate = 0.1;
  EXPECT_LE(drafters.asked_in(3, 40), 6u);
}

// How often a drafter is asked that costs next to no time and is right every second time.
size_t asked_at_row_price(double row_ms) {
  const auto quick = scripted("quick", chain({{1, 0.9}}));
  Combination both({scripted("silent", chain({})), quick});
  both.request.rate = 0.001;
  both.request.row_ms = row_ms;
  for (int step = 0; step < 40; ++step) {
    EXPECT_TRUE(both.draft().ok());
    both.observe(step % 2 == 0 ? std::vector<TokenId>{1, 3} : std::vector<TokenId>{3});
  }
  return quick->asked_nodes.size();
}

TEST(Combined, WhoseTokensAreWorthLessThanTheirRowsIsAskedNowAndThen) {
  EXPECT_EQ(asked_at_row_price(200.0), 40u);  // a row costs what 0.2 tokens are worth
  EXPECT_LE(asked_at_row_price(800.0), 12u);
}

// The first draft of a sequence comes after a prompt that the drafter has to read.
TEST(Combined, TheTimeToReadAPromptIsNotThatOfADraft) {
  const auto reader = scripted("reader", [](const DraftRequest& request, TokenTree& tree) {
    if (request.tokens.size() == 100) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return chain({{2, 0.9}})(request, tree);
  });
  Combination both({scripted("silent", chain({})), reader});
  both.request.rate = 0.1;
  const std::vector<TokenId> text(200, 7);
  for (size_t step = 0; step < 8; ++step) {
    both.request.tokens = std::span(text).first(100 + 2 * step);
    ASSERT_TRUE(both.draft().ok());
    both.observe({2, 7});
  }
  EXPECT_EQ(reader->asked_nodes.size(), 8u);
}

TEST(Combined, WhereTimeHasAPriceANewSequenceBeginsWithWhatOthersProved) {
  SlowAndUseless drafters;
  drafters.both().request.rate = 0.005;
  EXPECT_GE(drafters.asked_in(3, 40), 15u);  // first it has to prove that
  EXPECT_LE(drafters.asked_in(4, 40), 3u);
  drafters.both().request.rate = 0.0;
  EXPECT_EQ(drafters.asked_in(5, 10), 10u);
}

// Rejection's output depends on the order of siblings: it must not depend on the machine's load.
TEST(Combined, WhereTimeHasNoPriceDraftersTakeTheirTurnsAsNamed) {
  const auto slow = scripted("slow", [](const DraftRequest& request, TokenTree& tree) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return chain({{1, 0.5}})(request, tree);
  });
  Combination both({slow, scripted("quick", chain({{2, 0.5}}))});
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(both.draft().ok());
    EXPECT_THAT(both.tree.tokens(), ElementsAre(9, 1, 2));
  }
}

TEST(Combined, WhereTimeHasNoPriceAllAreAskedAlways) { EXPECT_EQ(steps_asked(0.0).size(), 70u); }

// Random trees, the same for the same request and name.
Script random_trees(uint32_t seed) {
  return [seed](const DraftRequest& request, TokenTree& tree) -> Status {
    std::mt19937 random(seed + 1000 * static_cast<uint32_t>(request.sequence) +
                        static_cast<uint32_t>(request.tokens.size()));
    if (random() % 5 == 0) return {};
    for (int i = 0; i < request.max_nodes; ++i) {
      tree.add(static_cast<int>(random() % static_cast<uint32_t>(tree.size())), random() % 3,
               static_cast<double>(1 + random() % 9) / 10.0);
    }
    return {};
  };
}

struct Grown {
  std::vector<TokenId> tokens;
  std::vector<int> parents;
  std::vector<double> probabilities;
  std::vector<uint32_t> sources;
  bool operator==(const Grown&) const = default;
};

std::vector<Grown> run_requests(ThreadPool* team, AcceptanceRule rule) {
  const auto combined =
      combine_drafters("all", {.drafters = {scripted("A", random_trees(1)), scripted("B", random_trees(2)),
                                            scripted("C", random_trees(3))},
                               .team = team});
  SamplingParams sampling;
  sampling.temperature = 1.0;
  std::mt19937 random(7);
  std::vector<TokenId> tokens(200, 0);
  std::vector<Grown> all;
  for (size_t step = 1; step < 80; ++step) {
    std::vector<DraftRequest> requests;
    for (uint64_t sequence = 0; sequence < 4; ++sequence) {
      if (random() % 4 == 0) continue;
      requests.push_back({.sequence = sequence,
                          .tokens = std::span(tokens).first(step),
                          .max_draft_len = 8,
                          .max_nodes = 1 + static_cast<int>(random() % 9),
                          .sampling = &sampling,
                          .acceptance = rule});
    }
    std::vector<TokenTree> trees(requests.size(), TokenTree(0));
    EXPECT_TRUE(combined->draft(requests, trees).ok());
    for (size_t i = 0; i < trees.size(); ++i) {
      const TokenTree& tree = trees[i];
      Grown grown{{tree.tokens().begin(), tree.tokens().end()},
                  {tree.parents().begin(), tree.parents().end()},
                  {},
                  {}};
      for (int node = 0; node < tree.size(); ++node) {
        grown.probabilities.push_back(tree.probability(node));
        grown.sources.push_back(tree.sources(node));
      }
      EXPECT_LE(tree.drafted(), requests[i].max_nodes);
      all.push_back(std::move(grown));
      Verdict verdict;
      for (size_t token = 0; token < 1 + random() % 4; ++token)
        verdict.tokens.push_back(static_cast<TokenId>(random() % 3));
      combined->observe(requests[i].sequence, tree, verdict);
    }
  }
  return all;
}

TEST(Combined, SideBySideDraftsTheSame) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool team(threads);
    for (const AcceptanceRule rule : {AcceptanceRule::kCoupled, AcceptanceRule::kRejection}) {
      EXPECT_TRUE(run_requests(&team, rule) == run_requests(nullptr, rule)) << threads << " threads";
    }
  }
}

TEST(Combined, AllHearOfEverySequence) {
  const auto a = scripted("A", chain({{1, 0.5}}));
  const auto b = scripted("B", chain({{2, 0.5}}));
  Combination both({a, b});
  both.drafter().begin(3, both.request.tokens);
  ASSERT_TRUE(both.draft().ok());
  both.observe({1, 2});
  both.drafter().end(3);
  for (const auto& member : {a, b}) {
    EXPECT_THAT(member->begun, ElementsAre(3));
    EXPECT_THAT(member->observed, ElementsAre(3));
    EXPECT_THAT(member->ended, ElementsAre(3));
  }
}

std::string refusal(std::vector<Method> combine) {
  SpeculativeOptions options;
  options.decoding_type = Method::kCombined;
  options.combine = std::move(combine);
  const auto made = make_drafter(options, {});
  if (made.ok()) return "";
  EXPECT_EQ(made.error().kind, ErrorKind::kUsage);
  return made.error().message;
}

TEST(Combined, NamesOneToThirtyTwoMethodsThatDraft) {
  EXPECT_EQ(refusal({Method::kNGram}), "");
  EXPECT_EQ(refusal(std::vector<Method>(32, Method::kNGram)), "");
  EXPECT_THAT(refusal(std::vector<Method>(33, Method::kNGram)), HasSubstr("found 33"));
  EXPECT_THAT(refusal({}), HasSubstr("found 0"));
  EXPECT_THAT(refusal({Method::kNGram, Method::kCombined}), HasSubstr("found Combined"));
  EXPECT_THAT(refusal({Method::kNGram, Method::kAuto}), HasSubstr("found Auto"));
  EXPECT_THAT(refusal({Method::kSpecInfer}), HasSubstr("speculative_models must name 1 to 32"));
}

}  // namespace
}  // namespace outrider
