// SPDX-License-Identifier: Apache-2.0
#include "ranks/neighbour_links.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>

namespace outrider {
namespace {

constexpr int64_t kLongerThanARing = int64_t{3} << 20;

// Two ranks of one process.
struct TwoRanks {
  NeighbourLinks first{2, 0}, second{2, 1};
  bool are_linked = first.add(1, getpid(), second.inbox()) && second.add(0, getpid(), first.inbox());
};

std::vector<std::byte> numbered_bytes(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(random()));
  return bytes;
}

std::vector<std::byte> received(NeighbourLink& link, int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>(count));
  for (int64_t there = 0; there < count;) {
    there += link.read(std::span(bytes).subspan(static_cast<size_t>(there)));
    link.flush();
  }
  return bytes;
}

TEST(NeighbourLinks, BytesOfBothRanksArriveInTheirOrder) {
  TwoRanks ranks;
  ASSERT_TRUE(ranks.are_linked);
  const auto exchange = [](NeighbourLink& link, uint32_t own, uint32_t other) {
    std::mt19937 sizes(7);  // both ranks draw the same ones
    for (uint32_t turn = 0; turn < 400; ++turn) {
      const auto count = static_cast<int64_t>(sizes() % (turn % 50 == 0 ? kLongerThanARing : 20'000));
      link.post(numbered_bytes(count, own + turn));
      ASSERT_EQ(received(link, count), numbered_bytes(count, other + turn)) << turn;
    }
    while (!link.is_flushed()) link.flush();
  };
  std::thread second([&] { exchange(*ranks.second.to(0), 10'000, 20'000); });
  exchange(*ranks.first.to(1), 20'000, 10'000);
  second.join();
}

TEST(NeighbourLinks, APostDoesNotWaitForTheOtherRank) {
  TwoRanks ranks;
  ASSERT_TRUE(ranks.are_linked);
  NeighbourLink& to_second = *ranks.first.to(1);
  NeighbourLink& to_first = *ranks.second.to(0);
  const std::vector<std::byte> one = numbered_bytes(kLongerThanARing, 1), two = numbered_bytes(100, 2);
  EXPECT_FALSE(to_first.has_bytes());
  to_second.post(one);
  to_second.post(two);
  EXPECT_TRUE(to_first.has_bytes());
  EXPECT_FALSE(to_second.is_flushed());
  std::vector<std::byte> all = one, found(one.size() + two.size());
  all.insert(all.end(), two.begin(), two.end());
  for (size_t there = 0; there < found.size(); to_second.flush())
    there += static_cast<size_t>(to_first.read(std::span(found).subspan(there)));
  EXPECT_EQ(found, all);
  EXPECT_FALSE(to_first.has_bytes());
  EXPECT_TRUE(to_second.is_flushed());
}

TEST(NeighbourLinks, AnInboxThatCannotBeReachedIsNotLinked) {
  NeighbourLinks first(2, 0), second(2, 1);
  EXPECT_FALSE(first.add(1, getpid(), NeighbourLinks::kNoInbox));
  EXPECT_FALSE(first.add(1, getpid(), 1 << 20));
  EXPECT_EQ(first.to(1), nullptr);
  EXPECT_TRUE(first.add(1, getpid(), second.inbox()));
  first.remove(1);
  EXPECT_EQ(first.to(1), nullptr);
  EXPECT_EQ(NeighbourLinks().to(1), nullptr);
}

}  // namespace
}  // namespace outrider
