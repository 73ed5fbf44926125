// SPDX-License-Identifier: Apache-2.0
#include "server/api/response_store.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

constexpr size_t kKiB = 1024;

StoredResponse response_of(size_t bytes) {
  return {.messages = {}, .body = std::string(bytes, 'x'), .input = "[]"};
}

TEST(ResponseStore, FindsAResponseOnlyWithItsKey) {
  ResponseStore store(64 * kKiB);
  store.put(1, "a", response_of(10));
  ASSERT_NE(store.find(1, "a"), nullptr);
  EXPECT_EQ(store.find(1, "a")->input, "[]");
  EXPECT_EQ(store.find(2, "a"), nullptr);
  EXPECT_EQ(store.find(1, "b"), nullptr);
  EXPECT_FALSE(store.erase(2, "a"));
  EXPECT_TRUE(store.erase(1, "a"));
  EXPECT_FALSE(store.erase(1, "a"));
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(ResponseStore, ForgetsTheLeastRecentlyUsed) {
  ResponseStore store(10 * kKiB);
  for (const char* id : {"a", "b", "c"}) store.put(1, id, response_of(2 * kKiB));
  store.find(1, "a");
  store.put(1, "d", response_of(2 * kKiB));
  EXPECT_NE(store.find(1, "a"), nullptr);
  EXPECT_EQ(store.find(1, "b"), nullptr);
  EXPECT_NE(store.find(1, "d"), nullptr);
}

// A client that stores as much as it can drives out only its own conversations.
TEST(ResponseStore, HoldsItsLimitUnderAHostileClient) {
  constexpr size_t kLimit = 256 * kKiB;
  ResponseStore store(kLimit);
  store.put(7, "quiet", response_of(4 * kKiB));
  for (int i = 0; i < 5000; ++i) {
    store.put(8, "r" + std::to_string(i), response_of(static_cast<size_t>(i) * 37 % (40 * kKiB)));
    ASSERT_LE(store.bytes(), kLimit);
  }
  store.put(8, "huge", response_of(2 * kLimit));
  EXPECT_EQ(store.find(8, "huge"), nullptr);
  EXPECT_NE(store.find(7, "quiet"), nullptr);
}

}  // namespace
}  // namespace outrider
