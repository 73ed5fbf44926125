// SPDX-License-Identifier: Apache-2.0
#include "ranks/thread_ranks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "ranks/peer_watch.h"
#include "ranks/rank_group.h"

namespace outrider {
namespace {

std::span<const std::byte> bytes_of(const int& number) { return std::as_bytes(std::span(&number, 1)); }

TEST(ThreadRanks, MessagesArriveInTheirOrder) {
  ThreadRanks job(3);
  constexpr int kMessages = 1000;
  std::vector<std::thread> senders;
  for (int rank = 1; rank < 3; ++rank) {
    senders.emplace_back([&job, rank] {
      for (int i = 0; i < kMessages; ++i) job.of(rank).send(bytes_of(rank * kMessages + i), 0);
    });
  }
  for (int i = 0; i < kMessages; ++i) {
    for (int rank = 2; rank > 0; --rank) {
      int received = 0;
      job.of(0).receive(std::as_writable_bytes(std::span(&received, 1)), rank);
      ASSERT_EQ(received, rank * kMessages + i);
    }
  }
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(job.of(1).traffic().messages, kMessages);
  EXPECT_EQ(job.of(1).traffic().bytes, kMessages * int64_t{sizeof(int)});
}

TEST(ThreadRanks, AMessageIsSeenBeforeItIsReceived) {
  ThreadRanks job(3, /*spare=*/1);
  EXPECT_FALSE(job.of(1).has_message(0));
  job.of(0).send(bytes_of(1), 1);
  EXPECT_TRUE(job.of(1).has_message(0));
  EXPECT_FALSE(job.of(1).has_message(2));
  int received = 0;
  job.of(1).receive(std::as_writable_bytes(std::span(&received, 1)), 0);
  EXPECT_FALSE(job.of(1).has_message(0));
  job.of(2).fail();  // receive() would throw
  EXPECT_TRUE(job.of(1).has_message(2));
}

TEST(ThreadRanks, AFailedRankEndsThoseThatWait) {
  ThreadRanks job(3);
  std::thread waiting([&job] {
    int received = 0;
    EXPECT_THROW(job.of(1).receive(std::as_writable_bytes(std::span(&received, 1)), 2), RankFailure);
  });
  EXPECT_EQ(job.of(1).ended(), -1);
  job.of(0).fail();
  waiting.join();
  EXPECT_EQ(job.of(1).ended(), 0);
  EXPECT_THROW(job.of(2).send(bytes_of(1), 1), RankFailure);
}

TEST(ThreadRanks, ASpareRankEndsAlone) {
  ThreadRanks job(4, /*spare=*/2);
  std::thread waiting([&job] {
    int received = 0;
    EXPECT_THROW(job.of(0).receive(std::as_writable_bytes(std::span(&received, 1)), 3), RankFailure);
    job.of(0).receive(std::as_writable_bytes(std::span(&received, 1)), 2);
    EXPECT_EQ(received, 5);
  });
  job.of(3).fail();
  EXPECT_THROW(job.of(1).send(bytes_of(1), 3), RankFailure);
  job.of(2).send(bytes_of(5), 0);
  waiting.join();
  job.of(1).fail();
  EXPECT_THROW(job.of(0).send(bytes_of(1), 2), RankFailure);
}

TEST(ThreadRanks, WhatASpareRankHasSentArrives) {
  ThreadRanks job(2, /*spare=*/1);
  job.of(1).send(bytes_of(5), 0);
  job.of(1).fail();
  int received = 0;
  job.of(0).receive(std::as_writable_bytes(std::span(&received, 1)), 1);
  EXPECT_EQ(received, 5);
  EXPECT_THROW(job.of(0).receive(std::as_writable_bytes(std::span(&received, 1)), 1), RankFailure);
}

TEST(RankGroup, NumbersItsMembersAnew) {
  ThreadRanks job(4);
  const auto view = [&job](int rank) {
    return RankGroup(std::shared_ptr<Communicator>(&job.of(rank), [](Communicator*) {}), {0, 2, 3});
  };
  RankGroup first = view(0), last = view(3);
  EXPECT_EQ(last.rank(), 2);
  EXPECT_EQ(last.size(), 3);
  EXPECT_EQ(last.place(), 3);
  first.send(bytes_of(7), 2);
  int received = 0;
  last.receive(std::as_writable_bytes(std::span(&received, 1)), 0);
  EXPECT_EQ(received, 7);
  EXPECT_EQ(first.traffic().messages, 1);
}

TEST(PeerWatch, NoticesThatAProcessHasEnded) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  std::vector<ProcessPlace> places(2, ProcessPlace::own());
  places[1].process = child;
  const PeerWatch watch(places, 0);
  EXPECT_EQ(watch.neighbours(), 1);
  EXPECT_EQ(watch.neighbours(0), 0);
  EXPECT_EQ(PeerWatch(places, 1).neighbours(1), 1);
  EXPECT_EQ(watch.ended(), -1);
  kill(child, SIGKILL);
  for (int turn = 0; turn < 5000 && watch.ended() < 0; ++turn) usleep(1000);
  EXPECT_EQ(watch.ended(), 1);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace outrider
