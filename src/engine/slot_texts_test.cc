// SPDX-License-Identifier: Apache-2.0
#include "engine/slot_texts.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

std::vector<TokenId> text_of(const SlotTexts& slots, int slot, uint64_t scope = 0) {
  const auto text = slots.text(slot, scope);
  return {text.begin(), text.end()};
}

TEST(SlotTexts, TakesTheSlotThatIsNamed) {
  SlotTexts slots(3);
  slots.keep(2, std::vector<TokenId>{1, 2, 3}, 0);
  EXPECT_EQ(text_of(slots, 2), (std::vector<TokenId>{1, 2, 3}));
  EXPECT_TRUE(text_of(slots, 2, 7).empty()) << "of another scope";
  EXPECT_TRUE(text_of(slots, 0).empty());
  slots.erase(2);
  EXPECT_TRUE(text_of(slots, 2).empty());
  EXPECT_TRUE(slots.check(0).ok());
  EXPECT_FALSE(slots.check(3).ok());
  EXPECT_FALSE(slots.check(-1).ok());
}

TEST(SlotTexts, ChoosesASlotForARequestThatNamesNone) {
  SlotTexts slots(2);
  slots.keep(-1, std::vector<TokenId>{1, 2, 3, 4}, 0);
  slots.keep(-1, std::vector<TokenId>{9, 9}, 0);
  EXPECT_EQ(text_of(slots, 0).size(), 4u);
  EXPECT_EQ(text_of(slots, 1).size(), 2u);
  slots.keep(-1, std::vector<TokenId>{1, 2, 3, 4, 5}, 0);
  EXPECT_EQ(text_of(slots, 0).size(), 5u) << "it goes on from there";
  slots.keep(-1, std::vector<TokenId>{1, 2, 3, 4, 5, 6}, 8);
  EXPECT_EQ(text_of(slots, 1, 8).size(), 6u) << "the other scope's text was not used";
  slots.keep(99, std::vector<TokenId>{5}, 0);
  EXPECT_EQ(text_of(slots, 0), (std::vector<TokenId>{5}));
}

}  // namespace
}  // namespace outrider
