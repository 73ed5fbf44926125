// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>

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
