// SPDX-License-Identifier: Apache-2.0
#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace outrider {
namespace {

// Text before the first match, whatever pieces the text comes in.
std::string cut_in_pieces(const std::vector<std::string>& stops, const std::string& text, uint32_t cuts,
                          bool* matched) {
  StopMatcher matcher(stops);
  std::string out;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((cuts >> i & 1) == 0 && i + 1 < text.size()) continue;
    matcher.push(std::string_view(text).substr(begin, i + 1 - begin), out);
    begin = i + 1;
  }
  matcher.finish(out);
  *matched = matcher.matched();
  return out;
}

TEST(StopMatcher, EqualsSearchingTheWholeTextForEveryCut) {
  const std::vector<std::vector<std::string>> cases = {{"ab"}, {"aab", "ba"},  {"aaa"},
                                                       {"b"},  {"abab", "bb"}, {""}};
  for (const auto& stops : cases) {
    for (int length = 1; length <= 7; ++length) {
      for (int letters = 0; letters < 1 << length; ++letters) {
        std::string text;
        for (int i = 0; i < length; ++i) text += (letters >> i & 1) != 0 ? 'a' : 'b';
        for (uint32_t cuts = 0; cuts < 1u << (length - 1); ++cuts) {
          bool matched = false;
          const std::string out = cut_in_pieces(stops, text, cuts, &matched);
          if (!matched) {
            ASSERT_EQ(out, text);
            for (const std::string& stop : stops)
              ASSERT_TRUE(stop.empty() || text.find(stop) == std::string::npos);
            continue;
          }
          // Pieces decide which of two overlapping stops is seen first, but never let one through.
          ASSERT_EQ(out, text.substr(0, out.size()));
          for (const std::string& stop : stops)
            ASSERT_TRUE(stop.empty() || out.find(stop) == std::string::npos);
          if (stops.size() == 1) {
            ASSERT_EQ(out.size(), text.find(stops[0]));
          }
        }
      }
    }
  }
}

TEST(StopMatcher, NothingComesAfterAMatch) {
  StopMatcher matcher({"END"});
  std::string out;
  matcher.push("text E", out);
  EXPECT_EQ(out, "text ");
  matcher.push("ND more", out);
  matcher.push("still more", out);
  matcher.finish(out);
  EXPECT_EQ(out, "text ");
  EXPECT_TRUE(matcher.matched());
}

}  // namespace
}  // namespace outrider
