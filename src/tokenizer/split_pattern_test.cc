// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/split_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tokenizer/pre_tokenizer.h"

namespace outrider {
namespace {

using testing::ElementsAre;

std::vector<std::string_view> split(std::string_view text, SplitRule rule) {
  const auto pre_tokenizer = PreTokenizer::create({std::move(rule)});
  EXPECT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.error().message;
  return pre_tokenizer.ok() ? pre_tokenizer->split(text) : std::vector<std::string_view>();
}

TEST(SplitPattern, MongolianVowelSeparatorIsNoSpace) {
  EXPECT_THAT(split("a\u180E b", {.pattern = "\\s"}), ElementsAre("a\u180E", " ", "b"));
  EXPECT_THAT(split("\u180E", {.pattern = "\\S+"}), ElementsAre("\u180E"));
  EXPECT_THAT(split(" \u180E", {.pattern = "[^\\s]"}), ElementsAre(" ", "\u180E"));
  EXPECT_THAT(split(" \u180Ea", {.pattern = "[\\Sx]"}), ElementsAre(" ", "\u180E", "a"));
}

TEST(SplitPattern, DollarMeansTheEndOfALine) {
  EXPECT_THAT(split("a \nb ", {.pattern = " $"}), ElementsAre("a", " ", "\nb", " "));
}

TEST(SplitPattern, CaseFoldingIsUnicode) {
  EXPECT_THAT(split("'\u017F'S", {.pattern = "(?i:'s)"}), ElementsAre("'\u017F", "'S"));
}

TEST(SplitPattern, KnowsCharactersOfUnicode16) {
  EXPECT_THAT(split("a\U0001CCF2", {.pattern = "\\p{N}"}), ElementsAre("a", "\U0001CCF2"));
  EXPECT_THAT(split("-\U00016D43", {.pattern = "[\\p{L}]"}), ElementsAre("-", "\U00016D43"));
  EXPECT_THAT(split("-\U00016D43", {.pattern = "\\P{L}"}), ElementsAre("-", "\U00016D43"));
}

TEST(SplitPattern, EmptyMatchesSplitBetweenCharacters) {
  EXPECT_THAT(split("abx", {.pattern = "x*"}), ElementsAre("a", "b", "x"));
  EXPECT_THAT(split("1234567", {.pattern = "(?=(?:\\d{3})+$)"}), ElementsAre("1", "234", "567"));
}

TEST(SplitPattern, Behaviors) {
  const auto with = [](SplitBehavior behavior, bool invert = false) {
    return split("a--b-c", {.pattern = "-", .behavior = behavior, .invert = invert});
  };
  EXPECT_THAT(with(SplitBehavior::kIsolated), ElementsAre("a", "-", "-", "b", "-", "c"));
  EXPECT_THAT(with(SplitBehavior::kRemoved), ElementsAre("a", "b", "c"));
  EXPECT_THAT(with(SplitBehavior::kRemoved, true), ElementsAre("-", "-", "-"));
  EXPECT_THAT(with(SplitBehavior::kMergedWithPrevious), ElementsAre("a-", "-", "b-", "c"));
  EXPECT_THAT(with(SplitBehavior::kMergedWithNext), ElementsAre("a", "-", "-b", "-c"));
  EXPECT_THAT(with(SplitBehavior::kContiguous), ElementsAre("a", "--", "b", "-", "c"));
}

TEST(SplitPattern, MappedBytesMayCutThroughCharacters) {
  // U+00B2 is C2 B2, spelled "Â²", and "²" is a number.
  const std::string text = "\u00B2";
  EXPECT_THAT(split(text, {.pattern = "\\p{N}", .on_mapped_bytes = true}), ElementsAre("\xC2", "\xB2"));
  EXPECT_FALSE(PreTokenizer::create({{.pattern = "a", .on_mapped_bytes = true}, {.pattern = "b"}}).ok());
}

TEST(SplitPattern, WordBordersSeeMarksAsPartsOfWords) {
  EXPECT_THAT(split("ab c", {.pattern = "\\b"}), ElementsAre("ab", " ", "c"));
  EXPECT_THAT(split("12e\u0301x", {.pattern = "\\d+\\b|e\\b"}), ElementsAre("12e\u0301x"));
}

TEST(SplitPattern, TranslatesIntervals) {
  EXPECT_THAT(split("aaa", {.pattern = "a{,2}"}), ElementsAre("aa", "a"));
  EXPECT_THAT(split("a{x}", {.pattern = "{x}"}), ElementsAre("a", "{x}"));
}

TEST(SplitPattern, RefusesWhatPcre2ReadsInAnotherWay) {
  for (const char* pattern :
       {"[a&&b]", "[a[bc]]",       "[]a]",      "(?<name>a)", "(?P<name>a)", "(?i)a", "(?x: a)", "(*UTF)a",
        "a{2}+",  "(a)\\1",        "\\h",       "\\K",        "[\\b]",       "\\X",   "\\Qa\\E", "\\xE9",
        "\\u00",  "\\p",           "\\pL",      "\\x{12",     "[a",          "a\\",   "(",       "a**",
        "[z-a]",  "\\p{Nonsense}", "(?{code})", "(?1)",       "(?R)",        "(?C1)", "[\\W]",   "\\Z",
        "\\G"}) {
    EXPECT_FALSE(SplitPattern::compile(pattern).ok()) << pattern;
  }
  EXPECT_FALSE(SplitPattern::compile(std::string(70000, 'a')).ok());
  EXPECT_FALSE(SplitPattern::compile(std::string(1000, '(') + std::string(1000, ')')).ok());
}

}  // namespace
}  // namespace outrider
