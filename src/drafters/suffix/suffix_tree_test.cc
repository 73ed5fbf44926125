// SPDX-License-Identifier: Apache-2.0
#include "drafters/suffix/suffix_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "drafters/suffix/suffix_draft.h"

namespace outrider {
namespace {

using Tokens = std::vector<TokenId>;

// The slow, obvious counterpart: texts, and counts by looking everywhere.
struct Texts {
  explicit Texts(int max_tree_depth) : tree(max_tree_depth) {}

  int count(const Tokens& string) const {
    int found = 0;
    for (const auto& [id, tokens] : texts) {
      for (size_t i = 0; i + string.size() <= tokens.size(); ++i) {
        found +=
            std::equal(string.begin(), string.end(), tokens.begin() + static_cast<std::ptrdiff_t>(i)) ? 1 : 0;
      }
    }
    return found;
  }

  std::set<Tokens> strings() const {
    std::set<Tokens> all;
    for (const auto& [id, tokens] : texts) {
      for (size_t i = 0; i < tokens.size(); ++i) {
        for (size_t n = 1; n <= static_cast<size_t>(tree.max_tree_depth()) && i + n <= tokens.size(); ++n) {
          all.emplace(tokens.begin() + static_cast<std::ptrdiff_t>(i),
                      tokens.begin() + static_cast<std::ptrdiff_t>(i + n));
        }
      }
    }
    return all;
  }

  // Strings where texts part, or where a suffix ends.
  int partings(const std::set<Tokens>& strings) const {
    std::map<Tokens, int> followers;
    for (Tokens string : strings) {
      string.pop_back();
      ++followers[string];
    }
    const auto ends_at = [&](const Tokens& string) {
      const bool is_longest = static_cast<int>(string.size()) == tree.max_tree_depth();
      return is_longest || std::any_of(texts.begin(), texts.end(), [&](const auto& text) {
               return text.second.size() >= string.size() &&
                      std::equal(string.rbegin(), string.rend(), text.second.rbegin());
             });
    };
    return static_cast<int>(std::count_if(strings.begin(), strings.end(), [&](const Tokens& string) {
      return followers[string] > 1 || ends_at(string);
    }));
  }

  void add_text() { growing = tree.add_text(), texts[growing]; }
  void append(TokenId token) { tree.append(growing, token), texts[growing].push_back(token); }
  void forget_oldest(int text) { tree.forget_oldest(text), texts[text].erase(texts[text].begin()); }
  void remove(int text) { tree.remove(text), texts.erase(text); }

  SuffixTree tree;
  std::map<int, Tokens> texts;
  int growing = -1;
};

class Random {
 public:
  explicit Random(uint32_t seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

 private:
  std::mt19937 random_;
};

// A few random changes; texts repeat themselves more than mere chance would have it.
void change(Texts& texts, Random& random, int letters) {
  const int what = random.below(20);
  if (texts.growing < 0 || !texts.texts.contains(texts.growing) || what == 0) {
    texts.add_text();
  } else if (what <= 3) {
    auto one = texts.texts.begin();
    std::advance(one, random.below(static_cast<int>(texts.texts.size())));
    if (what == 1) {
      texts.remove(one->first);
    } else if (!one->second.empty()) {
      texts.forget_oldest(one->first);
    }
  } else {
    const Tokens& grown = texts.texts[texts.growing];
    const size_t period = static_cast<size_t>(1 + random.below(6));
    for (int n = random.below(8); n >= 0; --n) {
      const bool repeats = grown.size() >= period && what > 8;
      texts.append(repeats ? grown[grown.size() - period] : static_cast<TokenId>(random.below(letters)));
    }
  }
}

Tokens string_at(const SuffixTree& tree, SuffixPlace place, Tokens before) {
  before.push_back(tree.last_token(place));
  return before;
}

void expect_counts(const Texts& texts, int letters) {
  const std::set<Tokens> strings = texts.strings();
  int64_t tokens = 0;
  for (const auto& [id, text] : texts.texts) {
    tokens += static_cast<int64_t>(text.size());
    const auto kept = texts.tree.tokens(id);
    ASSERT_EQ(Tokens(kept.begin(), kept.end()), text);
  }
  ASSERT_EQ(texts.tree.token_count(), tokens);
  ASSERT_EQ(texts.tree.node_count(), 1 + texts.partings(strings));
  for (const Tokens& string : strings) {
    const SuffixPlace place = texts.tree.find(string);
    ASSERT_TRUE(place);
    ASSERT_EQ(place.depth, static_cast<int>(string.size()));
    ASSERT_EQ(texts.tree.count(place), texts.count(string)) << ::testing::PrintToString(string);
    // The tokens that follow, in falling order of count; no others do.
    std::set<Tokens> followers;
    int last_count = texts.tree.count(place);
    for (SuffixPlace next = texts.tree.likeliest_after(place); next; next = texts.tree.next_likeliest(next)) {
      const Tokens longer = string_at(texts.tree, next, string);
      ASSERT_TRUE(followers.insert(longer).second);
      ASSERT_TRUE(strings.contains(longer));
      ASSERT_EQ(texts.tree.find(longer), next);
      ASSERT_LE(texts.tree.count(next), last_count);
      last_count = texts.tree.count(next);
    }
    for (TokenId token = 0; token < letters; ++token) {
      Tokens longer = string;
      longer.push_back(token);
      ASSERT_EQ(followers.contains(longer), strings.contains(longer));
      ASSERT_EQ(static_cast<bool>(texts.tree.find(longer)), strings.contains(longer));
    }
  }
}

void expect_repeated_ends(const Texts& texts) {
  if (!texts.texts.contains(texts.growing)) return;
  const Tokens& text = texts.texts.at(texts.growing);
  std::vector<SuffixPlace> places;
  texts.tree.find_repeated_ends(texts.growing, places);
  for (int m = 1; m < texts.tree.max_tree_depth() && m <= static_cast<int>(text.size()); ++m) {
    const Tokens end(text.end() - m, text.end());
    if (texts.count(end) > 1) {
      ASSERT_LE(static_cast<size_t>(m), places.size());
      ASSERT_EQ(places[static_cast<size_t>(m - 1)], texts.tree.find(end));
    } else if (static_cast<size_t>(m) <= places.size()) {
      // Known to be unique only with the next token; nothing follows it.
      ASSERT_FALSE(texts.tree.likeliest_after(places[static_cast<size_t>(m - 1)]));
    }
  }
}

TEST(SuffixTree, CountsEqualThoseOfLookingEverywhere) {
  for (uint32_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const int letters = 1 + random.below(4);
    Texts texts(2 + random.below(9));
    for (int i = 0; i < 25; ++i) {
      change(texts, random, letters);
      if (random.below(3) == 0) expect_counts(texts, letters);
      expect_repeated_ends(texts);
      if (::testing::Test::HasFatalFailure()) return;
    }
    while (!texts.texts.empty()) {
      texts.remove(texts.texts.begin()->first);
      expect_counts(texts, letters);
      if (::testing::Test::HasFatalFailure()) return;
    }
    ASSERT_EQ(texts.tree.node_count(), 1);
  }
}

// The draft after `match` by SuffixDecoding's rules, found by looking everywhere.
void expect_valid_draft(const Texts& texts, const Tokens& match, const SuffixDraftLimits& limits,
                        const SuffixDraft& draft) {
  const double whole = texts.count(match);
  const int max =
      std::min(limits.is_tree ? limits.max_nodes : std::min(limits.max_nodes, limits.max_draft_len),
               static_cast<int>(static_cast<double>(match.size()) * limits.nodes_per_match + 1e-6));
  const auto allowed = [&](const Tokens& path) {
    return static_cast<int>(path.size() - match.size()) <= limits.max_draft_len &&
           static_cast<int>(path.size()) <= texts.tree.max_tree_depth() && texts.count(path) > 0 &&
           texts.count(path) / whole >= limits.min_path_probability;
  };
  const auto continuations = [&](const Tokens& path) {
    std::vector<Tokens> all;
    for (TokenId token = 0; token < 4; ++token) {
      Tokens longer = path;
      longer.push_back(token);
      if (allowed(longer)) all.push_back(longer);
    }
    return all;
  };
  std::vector<Tokens> open = continuations(match);
  std::vector<Tokens> paths;
  double score = 0;
  for (const SuffixDraft::Node& node : draft.nodes) {
    const Tokens& parent = node.parent < 0 ? match : paths[static_cast<size_t>(node.parent)];
    Tokens path = parent;
    path.push_back(node.token);
    const auto found = std::find(open.begin(), open.end(), path);
    ASSERT_NE(found, open.end());
    open.erase(found);
    for (const Tokens& other : open) ASSERT_LE(texts.count(other), texts.count(path));
    ASSERT_EQ(node.path_probability, texts.count(path) / whole);
    ASSERT_EQ(node.probability, texts.count(path) / static_cast<double>(texts.count(parent)));
    score += node.path_probability;
    if (!limits.is_tree) open.clear();
    for (const Tokens& next : continuations(path)) open.push_back(next);
    paths.push_back(path);
  }
  ASSERT_DOUBLE_EQ(draft.score, score);
  ASSERT_EQ(draft.match, static_cast<int>(match.size()));
  ASSERT_LE(static_cast<int>(draft.nodes.size()), max);
  ASSERT_TRUE(static_cast<int>(draft.nodes.size()) == max || open.empty());
}

TEST(SuffixSpeculator, DraftsWhatTheRulesSay) {
  SuffixSpeculator speculator;
  for (uint32_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const int letters = 1 + random.below(4);
    Texts texts(2 + random.below(11));
    for (int i = 0; i < 15; ++i) change(texts, random, letters);
    if (!texts.texts.contains(texts.growing)) continue;
    const SuffixDraftLimits limits{.is_tree = random.below(2) == 0,
                                   .max_nodes = 1 + random.below(9),
                                   .max_draft_len = 1 + random.below(6),
                                   .nodes_per_match = 0.5 * random.below(6),
                                   .min_path_probability = 0.1 * random.below(5)};
    const Tokens& text = texts.texts[texts.growing];
    std::vector<SuffixPlace> places;
    texts.tree.find_repeated_ends(texts.growing, places);
    SuffixDraft plain;  // the loop as published: from the shortest match, later ones win ties
    for (const SuffixPlace place : places) {
      SuffixDraft draft;
      speculator.draft(texts.tree, place, limits, draft);
      expect_valid_draft(texts, Tokens(text.end() - place.depth, text.end()), limits, draft);
      if (::testing::Test::HasFatalFailure()) return;
      if (draft.score >= plain.score) plain = draft;
    }
    SuffixDraft best;
    speculator.improve(texts.tree, places, limits, best);
    ASSERT_EQ(best.score, plain.score);
    ASSERT_TRUE(plain.score == 0 || best.match == plain.match);
    ASSERT_EQ(best.nodes.size(), plain.nodes.size());
    for (size_t i = 0; i < best.nodes.size(); ++i) {
      ASSERT_EQ(best.nodes[i].token, plain.nodes[i].token);
      ASSERT_EQ(best.nodes[i].parent, plain.nodes[i].parent);
    }
  }
}

TEST(SuffixTree, RemovingAllGivesTheMemoryBack) {
  SuffixTree tree(16);
  const size_t before = tree.bytes();
  Random random(1);
  const int text = tree.add_text();
  for (int i = 0; i < 5000; ++i) tree.append(text, random.below(10));
  EXPECT_GT(tree.bytes(), 5000 * sizeof(TokenId));
  tree.remove(text);
  EXPECT_EQ(tree.node_count(), 1);
  EXPECT_LE(tree.bytes(), before + 512);  // the slot of the text stays
}

// First in, first out: memory depends on the tokens that are there, not on earlier ones.
TEST(SuffixTree, MemoryStaysBounded) {
  Random random(1);
  SuffixTree texts(32);
  std::vector<int> ids;
  size_t bytes = 0;
  for (int round = 0; round < 400; ++round) {
    ids.push_back(texts.add_text());
    for (int i = 0; i < 200; ++i) texts.append(ids.back(), random.below(8));
    if (ids.size() <= 20) continue;
    texts.remove(ids.front());
    ids.erase(ids.begin());
    if (round == 100) bytes = texts.bytes();
  }
  EXPECT_LE(texts.bytes(), bytes + bytes / 4);

  SuffixTree window(32);
  const int text = window.add_text();
  for (int i = 0; i < 100'000; ++i) {
    window.append(text, random.below(8));
    if (i >= 2000) window.forget_oldest(text);
    if (i == 10'000) bytes = window.bytes();
  }
  EXPECT_EQ(window.tokens(text).size(), 2000u);
  EXPECT_LE(window.bytes(), bytes + bytes / 4);
}

}  // namespace
}  // namespace outrider
