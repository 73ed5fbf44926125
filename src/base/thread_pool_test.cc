// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace outrider {
namespace {

TEST(ShareOf, CoversEveryItemOnceInWholeGrains) {
  for (int64_t total : {0, 1, 15, 16, 17, 100}) {
    for (int64_t grain : {1, 4, 16}) {
      for (int count : {1, 2, 3, 7}) {
        int64_t next = 0;
        for (int i = 0; i < count; ++i) {
          const Range range = share_of({i, count}, total, grain);
          EXPECT_EQ(range.begin, next);
          EXPECT_TRUE(range.begin % grain == 0 || range.begin == total);
          next = range.end;
        }
        EXPECT_EQ(next, total);
      }
    }
  }
}

TEST(ThreadPool, EveryWorkerRunsOncePerJob) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::vector<int> calls(threads, 0);
    for (int job = 1; job <= 2000; ++job) {
      pool.run([&](Worker worker) { ++calls[worker.index]; });
      for (int i = 0; i < threads; ++i) ASSERT_EQ(calls[i], job);
    }
  }
}

TEST(ThreadPool, EveryShareOfEveryJobRunsOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    std::vector<int> calls(40);
    for (int job = 0; job < 3000; ++job) {
      const int shares = 1 + job % 40;
      std::fill(calls.begin(), calls.end(), 0);
      pool.run(shares, [&](Worker worker) {
        if (worker.count == shares) ++calls[static_cast<size_t>(worker.index)];
      });
      for (int i = 0; i < 40; ++i) ASSERT_EQ(calls[static_cast<size_t>(i)], i < shares ? 1 : 0);
    }
  }
}

// A worker that sleeps in its share stands for one that lost its processor.
TEST(ThreadPool, WorksAloneForAWhileAfterAStall) {
  using std::chrono::milliseconds;
  ThreadPool pool(2);
  const auto caller = std::this_thread::get_id();
  // Runs jobs until the other worker took a share, at most `jobs`.
  const auto is_helped = [&](int jobs, milliseconds sleep) {
    std::atomic<bool> helped = false;
    for (int i = 0; i < jobs && !helped; ++i) {
      pool.run([&](Worker) {
        if (std::this_thread::get_id() != caller) {
          helped = true;
          std::this_thread::sleep_for(sleep);
        } else {
          for (int spins = 0; spins < 1000000 && !helped; ++spins) std::this_thread::yield();
        }
      });
    }
    return helped.load();
  };
  ASSERT_TRUE(is_helped(1000, milliseconds(100)));
  pool.run(2, [&](Worker) { EXPECT_EQ(std::this_thread::get_id(), caller); });
  std::this_thread::sleep_for(milliseconds(60));
  EXPECT_TRUE(is_helped(1000, milliseconds(0)));
}

TEST(ThreadPool, WakesParkedWorkers) {
  ThreadPool pool(3);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> calls = 0;
    pool.run([&](Worker) { ++calls; });
    EXPECT_EQ(calls, 3);
  }
}

}  // namespace
}  // namespace outrider
