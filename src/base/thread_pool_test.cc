// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

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

TEST(ThreadPool, UnsharedWorkIsDoneByItsOwner) {
  using std::chrono::milliseconds;
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::vector<std::thread::id> owners(static_cast<size_t>(threads));
    std::atomic<int> calls = 0;
    const auto at = [&](Worker worker) -> std::thread::id& {
      return owners[static_cast<size_t>(worker.index)];
    };
    pool.run_unshared([&](Worker worker) { at(worker) = std::this_thread::get_id(); });
    EXPECT_EQ(owners[0], std::this_thread::get_id());
    for (int job = 0; job < 200; ++job) {
      // Workers that fall asleep between jobs, and work that others would have long begun.
      if (job % 50 == 0) std::this_thread::sleep_for(milliseconds(5));
      pool.run_unshared([&](Worker worker) {
        EXPECT_EQ(at(worker), std::this_thread::get_id());
        ++calls;
      });
      pool.run(7, [](Worker) {});
    }
    EXPECT_EQ(calls, 200 * threads);
  }
}

std::vector<int> cpus_of_this_thread() {
  cpu_set_t mask;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  }
  return cpus;
}

TEST(ThreadPool, PinnedWorkersStayWhereTheyArePutAndTheCallerIsLeftAlone) {
  const std::vector<int> all = cpus_of_this_thread();
  ASSERT_FALSE(all.empty());
  std::vector<int> cpus;
  for (size_t i = 0; i < 3; ++i) cpus.push_back(all[i % all.size()]);
  ThreadPool pool(3, cpus);
  EXPECT_TRUE(pool.is_pinned());
  std::vector<std::vector<int>> found(3);
  pool.run_unshared([&](Worker worker) { found[static_cast<size_t>(worker.index)] = cpus_of_this_thread(); });
  EXPECT_EQ(found[0], all);
  EXPECT_EQ(found[1], std::vector<int>{cpus[1]});
  EXPECT_EQ(found[2], std::vector<int>{cpus[2]});
  EXPECT_FALSE(ThreadPool(2).is_pinned());
}

TEST(ThreadPool, ProcessorsThatAreNotThereAreDoneWithout) {
  ThreadPool pool(2, {0, CPU_SETSIZE - 1});
  EXPECT_FALSE(pool.is_pinned());
  int calls = 0;
  pool.run(5, [&](Worker worker) { calls += worker.index == 0 ? 1 : 0; });
  EXPECT_EQ(calls, 1);
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

// Processor time of this process, in seconds.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Processor time of short jobs with work of the caller between them, all on one processor.
double seconds_on_one_cpu(int threads) {
  double seconds = 0;
  std::thread([&] {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(sched_getcpu(), &cpus);
    ASSERT_EQ(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
    ThreadPool pool(threads);
    const double start = cpu_seconds();
    for (int job = 0; job < 20000; ++job) {
      std::atomic<int> work = 0;
      while (work < 2000) ++work;
      pool.run(2, [&](Worker) {});
    }
    seconds = cpu_seconds() - start;
  }).join();
  return seconds;
}

// A worker that waits for a job takes next to no time from the thread that brings it; pausing only would
// double it.
TEST(ThreadPool, WaitingWorkersLeaveTheirProcessor) {
  const double one = seconds_on_one_cpu(1);
  const double two = seconds_on_one_cpu(2);
  EXPECT_LT(two, 1.5 * one);
}

}  // namespace
}  // namespace outrider
