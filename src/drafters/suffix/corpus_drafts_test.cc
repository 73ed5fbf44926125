// SPDX-License-Identifier: Apache-2.0
// Drafts from a corpus, against counts over all of its places.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "corpus/test_corpus.h"
#include "drafters/suffix/suffix.h"
#include "drafters/suffix/suffix_draft.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using Tokens = std::vector<TokenId>;

int occurrences(const TokenDocuments& documents, const Tokens& string, bool followed) {
  int count = 0;
  for (const Tokens& document : documents) {
    const size_t size = string.size() + (followed ? 1 : 0);
    for (size_t i = 0; i + size <= document.size(); ++i)
      count += std::equal(string.begin(), string.end(), document.begin() + static_cast<int64_t>(i));
  }
  return count;
}

TEST(ContinuationTree, CountsWhatFollows) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    TokenDocuments documents(1 + random() % 4);
    for (Tokens& document : documents) {
      for (unsigned left = random() % 60; left > 0; --left)
        document.push_back(static_cast<TokenId>(random() % 3));
    }
    const auto corpus = test_corpus(documents, 3);
    ContextSearch search(*corpus);
    ContinuationTree tree(*corpus, 3);
    const Tokens context = {static_cast<TokenId>(random() % 3), static_cast<TokenId>(random() % 3)};
    for (int match = search.find(context); match > 0; --match) {
      const PlaceRange range = search.range(match);
      if (range.size() > ContinuationTree::kSamples) continue;
      const Tokens end(context.end() - match, context.end());
      std::vector<std::pair<SuffixPlace, Tokens>> open = {{tree.reset(range, match), end}};
      ASSERT_EQ(tree.count(open.front().first), occurrences(documents, end, true));
      for (size_t i = 0; i < open.size() && i < 100; ++i) {
        const auto [parent, string] = open[i];
        int last = tree.count(parent);
        SuffixPlace place = tree.likeliest_after(parent);
        for (; place; place = tree.next_likeliest(place)) {
          Tokens longer = string;
          longer.push_back(tree.last_token(place));
          ASSERT_EQ(tree.count(place), occurrences(documents, longer, false));
          ASSERT_LE(tree.count(place), last);
          ASSERT_EQ(place.depth, static_cast<int>(longer.size()));
          last = tree.count(place);
          open.emplace_back(place, longer);
        }
      }
    }
  }
}

TEST(ContinuationTree, ManyPlacesAreSampledEvenly) {
  TokenDocuments documents;
  for (int i = 0; i < 4000; ++i) documents.push_back({i % 10, 20, i % 4 == 0 ? 21 : 22});
  const auto corpus = test_corpus(documents, 30);
  ContextSearch search(*corpus);
  ContinuationTree tree(*corpus, 30);
  ASSERT_EQ(search.find(Tokens{20}), 1);
  const SuffixPlace root = tree.reset(search.range(1), 1);
  EXPECT_EQ(tree.count(root), ContinuationTree::kSamples);
  const SuffixPlace first = tree.likeliest_after(root);
  EXPECT_EQ(tree.last_token(first), 22);
  EXPECT_NEAR(tree.count(first), 0.75 * ContinuationTree::kSamples, 12);
}

class CorpusDraftsTest : public ::testing::Test {
 protected:
  void make(const TokenDocuments& documents, const SpeculativeOptions& options, int64_t vocab_size = 100) {
    DrafterContext context;
    context.vocab_size = vocab_size;
    context.corpus = test_corpus(documents, 100);
    auto made = make_suffix_drafter(options, context);
    ASSERT_TRUE(made.ok());
    drafter_ = *made;
  }

  TokenTree draft(const Tokens& tokens, int depth = 8, int nodes = 8) {
    const DraftRequest request{.sequence = ++sequence_,
                               .tokens = tokens,
                               .prompt_length = static_cast<int>(tokens.size()),
                               .max_draft_len = depth,
                               .max_nodes = nodes};
    TokenTree tree(tokens.back());
    EXPECT_TRUE(drafter_->draft({&request, 1}, {&tree, 1}).ok());
    return tree;
  }

  static Tokens drafted(const TokenTree& tree) { return {tree.tokens().begin() + 1, tree.tokens().end()}; }

  std::shared_ptr<Drafter> drafter_;
  uint64_t sequence_ = 0;
};

TEST_F(CorpusDraftsTest, ProposesWhatFollowedElsewhere) {
  make({{1, 2, 3, 4, 5, 6, 7}, {2, 3, 9}}, {});
  EXPECT_THAT(drafted(draft({8, 1, 2, 3})), ElementsAre(4, 5, 6));  // as many as match
  EXPECT_THAT(drafted(draft({8, 1, 2, 3}, 2)), ElementsAre(4, 5));
  EXPECT_THAT(drafted(draft({8, 1, 2, 3}, 8, 1)), ElementsAre(4));
  EXPECT_THAT(drafted(draft({8, 2, 3})), ElementsAre(4, 5));  // 4 and 9 once each
  EXPECT_EQ(draft({8, 2, 3}).probability(1), 0.5);
  EXPECT_EQ(draft({8, 2, 3}).probability(2), 0.99);
  EXPECT_THAT(drafted(draft({8, 6, 7})), ElementsAre());  // nothing follows
  EXPECT_THAT(drafted(draft({8})), ElementsAre());
}

TEST_F(CorpusDraftsTest, BranchesInTrees) {
  SpeculativeOptions options;
  options.tree.kind = TreeKind::kDynamic;
  make({{1, 2, 3}, {1, 2, 3}, {1, 2, 4}}, options);
  const TokenTree tree = draft({1, 2});
  EXPECT_THAT(drafted(tree), ElementsAre(3, 4));
  EXPECT_THAT(Tokens(tree.parents().begin(), tree.parents().end()), ElementsAre(-1, 0, 0));
  EXPECT_EQ(tree.probability(1), 2.0 / 3);
  EXPECT_EQ(tree.probability(2), 1.0 / 3);
}

TEST_F(CorpusDraftsTest, TheTextItselfComesFirstAmongEquals) {
  make({{1, 2, 3, 4}}, {});
  EXPECT_THAT(drafted(draft({1, 2, 5, 6, 1, 2})), ElementsAre(3, 4));  // the text's own 5 came in one of two
  EXPECT_THAT(drafted(draft({0, 7, 2, 5, 6, 7, 2})), ElementsAre(5, 6));
}

TEST_F(CorpusDraftsTest, TokensThatTheTargetLacksEndADraft) {
  make({{1, 2, 3, 60, 4}}, {}, 50);
  EXPECT_THAT(drafted(draft({1, 2})), ElementsAre(3));
  EXPECT_THAT(drafted(draft({1, 2, 3})), ElementsAre());
}

}  // namespace
}  // namespace outrider
