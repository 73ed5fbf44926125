// SPDX-License-Identifier: Apache-2.0
#include "drafters/ranked/guessed_verdicts.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace outrider {
namespace {

using Text = std::vector<TokenId>;

constexpr int kVocab = 7;

// The token of that rank after a text: a permutation of the vocabulary that depends on the last two tokens.
TokenId ranked_token(std::span<const TokenId> text, int rank) {
  TokenId state = 3;
  for (const TokenId token : text.last(std::min<size_t>(text.size(), 2)))
    state = (state * 5 + token + 1) % kVocab;
  return static_cast<TokenId>((state + rank * 2) % kVocab);
}

// Drafts a tree of the two likeliest tokens first and a chain of the likeliest one below each.
class RankingDrafter final : public Drafter {
 public:
  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    ++calls;
    if (delay_ms > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(delay_ms));
    for (size_t i = 0; i < requests.size(); ++i) grow(requests[i], trees[i]);
    return {};
  }

  int calls = 0;
  double delay_ms = 0;

 private:
  static void grow(const DraftRequest& request, TokenTree& tree) {
    for (int rank = 0, added = 0; rank < kVocab && added < std::min(2, request.max_nodes); ++rank) {
      Text text(request.tokens.begin(), request.tokens.end());
      TokenId token = ranked_token(text, rank);
      if (request.constraint != nullptr && !is_allowed(*request.constraint, token)) continue;
      ++added;
      int node = tree.add(0, token, rank == 0 ? 0.6 : 0.2);
      for (int depth = 1; depth < request.max_draft_len && tree.drafted() < request.max_nodes; ++depth) {
        text.push_back(token);
        token = ranked_token(text, 0);
        node = tree.add(node, token, 0.7);
      }
    }
  }

  static bool is_allowed(TokenConstraint& constraint, TokenId token) {
    return (constraint.allowed(constraint.start())[0] >> token & 1) != 0;
  }

  DrafterTraits traits_{.name = "ranking", .drafts_ahead = true};
};

// One sequence of a worker.
struct Session {
  DraftRequest request_now() const {
    return {.sequence = 1,
            .tokens = text,
            .max_draft_len = 3,
            .max_nodes = 6,
            .sampling = &sampling,
            .acceptance = rule,
            .may_guess = true};
  }

  TokenTree drafted(const DraftRequest& request) {
    TokenTree tree(request.tokens.back());
    EXPECT_TRUE(drafter.draft({&request, 1}, {&tree, 1}).ok());
    return tree;
  }

  // Hands out a tree and guesses until nothing is left. Drafts take so long that every guess is worth its
  // time.
  TokenTree hand_out() {
    const DraftRequest request = request_now();
    const TokenTree tree = drafted(request);
    guesses.start({&request, 1}, {&tree, 1}, 1e6);
    while (guesses.draft_next([] { return false; })) {
    }
    return tree;
  }

  SamplingParams sampling;
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  Text text = {1, 2, 3};
  RankingDrafter drafter;
  GuessedVerdicts guesses{drafter, kVocab};
};

void expect_same_nodes(const TokenTree& a, const TokenTree& b) {
  EXPECT_EQ(Text(a.tokens().begin(), a.tokens().end()), Text(b.tokens().begin(), b.tokens().end()));
  EXPECT_EQ(std::vector<int>(a.parents().begin(), a.parents().end()),
            std::vector<int>(b.parents().begin(), b.parents().end()));
}

// Every verdict that there may be: what was foreseen is what is drafted then.
TEST(GuessedVerdicts, AnAnswerIsTheTreeThatWouldBeDrafted) {
  std::mt19937 random(5);
  int foreseen = 0, answers = 0;
  Session session;
  session.drafter.delay_ms = 0.01;
  for (int step = 0; step < 300; ++step) {
    const TokenTree tree = session.hand_out();
    int node = 0;
    for (int child = 1; child < tree.size(); ++child)
      if (tree.parent(child) == node && random() % 3 != 0) node = child;
    Text path;
    for (int at = node; at > 0; at = tree.parent(at)) path.insert(path.begin(), tree.token(at));
    session.text.insert(session.text.end(), path.begin(), path.end());
    session.text.push_back(ranked_token(session.text, static_cast<int>(random() % 4)));
    const DraftRequest request = session.request_now();
    TokenTree answer(request.tokens.back());
    ++answers;
    if (!session.guesses.take(request, true, answer)) continue;
    ++foreseen;
    expect_same_nodes(answer, session.drafted(request));
  }
  EXPECT_GT(foreseen, answers / 5);
  EXPECT_LT(foreseen, answers);
}

TEST(GuessedVerdicts, OtherTextsAndOtherLimitsAreNotForeseen) {
  const auto takes = [](auto&& change, bool is_continued = true) {
    Session session;
    session.drafter.delay_ms = 0.01;
    const TokenTree tree = session.hand_out();
    session.text.push_back(tree.token(1));
    session.text.push_back(tree.token(2));
    session.text.push_back(tree.token(3));
    session.text.push_back(ranked_token(session.text, 0));
    DraftRequest request = session.request_now();
    change(request);
    TokenTree answer(request.tokens.back());
    return session.guesses.take(request, is_continued, answer);
  };
  EXPECT_TRUE(takes([](DraftRequest&) {}));
  EXPECT_FALSE(takes([](DraftRequest&) {}, false));
  EXPECT_FALSE(takes([](DraftRequest& request) { request.sequence = 2; }));
  EXPECT_FALSE(takes([](DraftRequest& request) { request.max_draft_len = 4; }));
  EXPECT_FALSE(takes([](DraftRequest& request) { request.max_nodes = 7; }));
  EXPECT_FALSE(takes([](DraftRequest& request) { request.acceptance = AcceptanceRule::kRejection; }));
  EXPECT_FALSE(takes([](DraftRequest& request) { request.source = 1; }));
  EXPECT_FALSE(takes([](DraftRequest& request) { request.wants_probabilities = true; }));
  EXPECT_FALSE(takes([](DraftRequest& request) { request.tokens = request.tokens.first(3); }));
}

// A smaller tree than the foreseen one is a part of it, and only where that cannot change the text.
TEST(GuessedVerdicts, WhatHasNoRoomIsCut) {
  for (const AcceptanceRule rule :
       {AcceptanceRule::kCoupled, AcceptanceRule::kTypical, AcceptanceRule::kRejection}) {
    Session session;
    session.rule = rule;
    session.drafter.delay_ms = 0.01;
    const TokenTree tree = session.hand_out();
    for (int node = 1; node <= 3; ++node) session.text.push_back(tree.token(node));
    session.text.push_back(ranked_token(session.text, 0));
    DraftRequest request = session.request_now();
    request.max_draft_len = 2;
    request.max_nodes = 3;
    TokenTree answer(request.tokens.back());
    ASSERT_EQ(session.guesses.take(request, true, answer), rule == AcceptanceRule::kCoupled);
    EXPECT_LE(answer.drafted(), 3);
    for (int node = 0; node < answer.size(); ++node) EXPECT_LE(answer.depth(node), 2);
  }
}

TEST(GuessedVerdicts, ConstrainedAndUnwillingRequestsAreLeftAlone) {
  Session session;
  DraftRequest request = session.request_now();
  const TokenTree tree = session.drafted(request);
  request.may_guess = false;
  session.guesses.start({&request, 1}, {&tree, 1}, 1.0);
  EXPECT_FALSE(session.guesses.draft_next([] { return false; }));
  EXPECT_EQ(session.drafter.calls, 1);
}

// An order that comes between the parts of a guess ends it, and a forgotten sequence is not drafted for.
TEST(GuessedVerdicts, AnOrderComesFirst) {
  Session session;
  const DraftRequest request = session.request_now();
  const TokenTree tree = session.drafted(request);
  session.guesses.start({&request, 1}, {&tree, 1}, 1.0);
  EXPECT_FALSE(session.guesses.draft_next([] { return true; }));
  EXPECT_EQ(session.drafter.calls, 2);
  session.guesses.forget(request.sequence);
  EXPECT_FALSE(session.guesses.draft_next([] { return false; }));
  EXPECT_EQ(session.drafter.calls, 2);
}

// Where the next order comes at once, a guess would only delay it.
TEST(GuessedVerdicts, NothingIsGuessedWithoutTime) {
  Session session;
  session.drafter.delay_ms = 3;
  int guesses = 0;
  for (int step = 0; step < 12; ++step) {
    const DraftRequest request = session.request_now();
    const TokenTree tree = session.drafted(request);
    session.guesses.start({&request, 1}, {&tree, 1}, 3.0);
    const int before = session.drafter.calls;
    if (step == 0) session.guesses.draft_next([] { return false; });  // measures how long a guess takes
    if (step > 2) session.guesses.draft_next([] { return false; });
    if (step > 2) guesses += session.drafter.calls - before;
    session.text.push_back(ranked_token(session.text, 5));
    const DraftRequest next = session.request_now();
    TokenTree answer(next.tokens.back());
    session.guesses.take(next, true, answer);
  }
  EXPECT_LE(guesses, 2);
}

}  // namespace
}  // namespace outrider
