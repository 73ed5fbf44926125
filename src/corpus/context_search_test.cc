// SPDX-License-Identifier: Apache-2.0
// The order of places and the search in it, against a look at every place of small texts.
#include "corpus/context_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "corpus/context_order.h"
#include "corpus/test_corpus.h"

namespace outrider {
namespace {

using Tokens = std::vector<TokenId>;

// Documents with many repetitions, some of them longer than the sorted depth.
TokenDocuments random_documents(std::mt19937& random, TokenId letters, TokenId highest) {
  TokenDocuments documents(1 + random() % 5);
  for (Tokens& document : documents) {
    for (unsigned left = random() % 200; left > 0; --left) {
      const unsigned kind = random() % 40;
      if (kind == 0 && document.size() > 50) {
        const Tokens copy(document.end() - 50, document.end() - 5);
        document.insert(document.end(), copy.begin(), copy.end());
      } else {
        // Few letters, some of them at the upper end of the vocabulary.
        const auto letter = static_cast<TokenId>(random() % static_cast<unsigned>(letters));
        document.push_back(kind % 2 == 0 ? letter : highest - letter);
      }
    }
  }
  return documents;
}

// The token after each occurrence of `end`.
Tokens followers(const TokenDocuments& documents, const Tokens& end) {
  Tokens found;
  for (const Tokens& document : documents) {
    for (size_t i = end.size(); i < document.size(); ++i) {
      if (std::equal(end.begin(), end.end(), document.begin() + static_cast<int64_t>(i - end.size())))
        found.push_back(document[i]);
    }
  }
  std::ranges::sort(found);
  return found;
}

Tokens followers(const Corpus& corpus, PlaceRange range) {
  Tokens found;
  for (int64_t i = range.begin; i < range.end; ++i)
    found.push_back(corpus.text()[corpus.places()[static_cast<size_t>(i)]]);
  std::ranges::sort(found);
  return found;
}

Tokens random_context(std::mt19937& random, const TokenDocuments& documents, TokenId letters) {
  Tokens context;
  const Tokens& document = documents[random() % documents.size()];
  if (!document.empty()) {
    const auto from = static_cast<int64_t>(random() % document.size());
    const auto count = std::min<int64_t>(static_cast<int64_t>(document.size()) - from, random() % 60);
    context.assign(document.begin() + from, document.begin() + from + count);
  }
  if (random() % 3 == 0) context.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(letters)));
  return context;
}

void expect_all_found(const TokenDocuments& documents, const Corpus& corpus, const Tokens& context) {
  ContextSearch search(corpus);
  const int longest = search.find(context);
  ASSERT_LE(longest, kContextDepth);
  const auto end = [&](int length) { return Tokens(context.end() - length, context.end()); };
  if (longest < kContextDepth && longest < static_cast<int>(context.size())) {
    ASSERT_TRUE(followers(documents, end(longest + 1)).empty());
  }
  for (int length = longest; length > 0; --length) {
    const Tokens expected = followers(documents, end(length));
    ASSERT_FALSE(expected.empty());
    ASSERT_EQ(followers(corpus, search.range(length)), expected) << length;
  }
}

TEST(ContextSearch, FindsEveryOccurrenceOfEveryEnd) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto letters = static_cast<TokenId>(1 + random() % 4);
    const TokenId separator = seed % 3 == 0 ? 70'000 : seed % 3 == 1 ? 0xFFFF : 9;
    const TokenDocuments documents = random_documents(random, letters, separator - 1);
    const auto corpus = test_corpus(documents, separator);
    ASSERT_NE(corpus, nullptr);
    for (int i = 0; i < 20; ++i) {
      expect_all_found(documents, *corpus, random_context(random, documents, letters));
      if (HasFatalFailure()) return;
    }
  }
}

// Tokens before a place, the nearest first.
Tokens context_of(const TokenText& text, uint32_t place) {
  Tokens context;
  for (int64_t i = 1; i <= kContextDepth; ++i) context.push_back(text[place - i]);
  return context;
}

void expect_in_order(const TokenText& text, const std::vector<uint32_t>& places) {
  for (size_t i = 1; i < places.size(); ++i) {
    const Tokens before = context_of(text, places[i - 1]), after = context_of(text, places[i]);
    ASSERT_LE(before, after) << i;
    // Where text beyond the sorted depth is equal as well, positions decide.
    const auto further = [&](uint32_t place) { return context_of(text, place - kContextDepth); };
    const bool is_equal = before == after && further(places[i - 1]) == further(places[i]);
    ASSERT_TRUE(!is_equal || places[i - 1] < places[i]) << i;
  }
}

// Documents of 12,000 tokens reach all ways of sorting: by bytes of keys, by comparisons, key after key, and
// by whole contexts.
TEST(ContextOrder, LongRunsAreInOrder) {
  std::mt19937 random(5);
  for (const TokenId separator : {9, 70'000}) {
    for (const unsigned letters : {1u, 2u, 3u, 8u}) {
      SCOPED_TRACE(std::to_string(separator) + " " + std::to_string(letters));
      TokenDocuments documents(2);
      for (Tokens& document : documents) {
        for (int i = 0; i < 12'000; ++i)
          document.push_back(separator - 1 -
                             static_cast<TokenId>(random() % 4000 == 0 ? 4 : random() % letters));
        // A copy of the first half, so that whole contexts are equal.
        document.insert(document.end(), document.begin(), document.begin() + 6'000);
      }
      std::vector<std::byte> bytes;
      const TokenText text = token_text(documents, separator, bytes);
      const auto firsts = count_places(text);
      ASSERT_TRUE(firsts.ok());
      std::vector<uint32_t> places;
      const Status sorted = sort_places(text, *firsts, 2, [&](std::span<const uint32_t> part) {
        places.insert(places.end(), part.begin(), part.end());
        return Status();
      });
      ASSERT_TRUE(sorted.ok());
      ASSERT_EQ(places.size(), 2 * 17'999u);
      ASSERT_EQ(std::set(places.begin(), places.end()).size(), places.size());
      expect_in_order(text, places);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(ContextSearch, TokensOutsideOfTheVocabularyOccurNowhere) {
  const auto corpus = test_corpus({{1, 2, 3}}, 5);
  ContextSearch search(*corpus);
  for (const Tokens& context :
       {Tokens{}, Tokens{-1}, Tokens{5}, Tokens{6}, Tokens{1 << 30}, Tokens{4}, Tokens{3}})
    EXPECT_EQ(search.find(context), 0);
  EXPECT_EQ(search.find(Tokens{-7, 2}), 1);
}

TEST(ContextSearch, TextsWithoutPlacesAreSearchedInVain) {
  for (const TokenDocuments& documents : {TokenDocuments{}, TokenDocuments{{}}, TokenDocuments{{1}, {2}}}) {
    const auto corpus = test_corpus(documents, 5);
    ASSERT_NE(corpus, nullptr);
    EXPECT_EQ(corpus->places().size(), 0u);
    EXPECT_EQ(ContextSearch(*corpus).find(Tokens{1}), 0);
  }
}

// The order does not depend on the number of threads, nor on how places are divided among them.
TEST(ContextOrder, IsTheOrderOfContextsOnAnyNumberOfThreads) {
  std::mt19937 random(1);
  for (const TokenId separator : {300, 70'000}) {
    TokenDocuments documents(3);
    for (Tokens& document : documents) {
      for (int i = 0; i < 3000; ++i)
        document.push_back(static_cast<TokenId>(random() % (random() % 2 == 0 ? 300 : 4)));
    }
    std::vector<std::byte> bytes;
    const TokenText text = token_text(documents, separator, bytes);
    const auto firsts = count_places(text);
    ASSERT_TRUE(firsts.ok());
    std::vector<uint32_t> one;
    for (const int threads : {1, 2, 7}) {
      std::vector<uint32_t> places;
      ASSERT_TRUE(sort_places(text, *firsts, threads, [&](std::span<const uint32_t> part) {
                    places.insert(places.end(), part.begin(), part.end());
                    return Status();
                  }).ok());
      if (threads == 1) one = places;
      ASSERT_EQ(places, one);
    }
    EXPECT_EQ(one.size(), 3 * 2999u);
    // Up to the separator, which is the greatest id.
    const auto context = [&](uint32_t place) {
      Tokens tokens;
      for (int i = 1; i <= kContextDepth; ++i) {
        tokens.push_back(text[place - i]);
        if (tokens.back() == separator) break;
      }
      return tokens;
    };
    for (size_t i = 1; i < one.size(); ++i) ASSERT_LE(context(one[i - 1]), context(one[i])) << i;
  }
}

TEST(ContextOrder, AnErrorOfTheSinkEndsIt) {
  std::vector<std::byte> bytes;
  const TokenText text = token_text({Tokens(1000, 1), Tokens(1000, 2), Tokens(1000, 3)}, 9, bytes);
  const auto firsts = count_places(text);
  int calls = 0;
  const Status sorted = sort_places(text, *firsts, 3, [&](std::span<const uint32_t>) {
    ++calls;
    return Status(io_error("the disk is full"));
  });
  EXPECT_EQ(sorted.error().message, "the disk is full");
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace outrider
