// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace outrider {

// The share of one worker in a job of `count` workers.
struct Worker {
  int index = 0;
  int count = 1;
};

// Half-open range of items.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

// Contiguous share of `total` items in units of `grain`: which worker does an item never changes the item's
// bits.
inline Range share_of(Worker worker, int64_t total, int64_t grain = 1) {
  const int64_t units = (total + grain - 1) / grain;
  const int64_t begin = units * worker.index / worker.count * grain;
  const int64_t end = units * (worker.index + 1) / worker.count * grain;
  return {begin < total ? begin : total, end < total ? end : total};
}

// A team of threads that runs one job at a time; the calling thread is worker 0. Workers spin for a short
// while after a job, then park, because the next kernel usually follows within microseconds.
class ThreadPool {
 public:
  // threads >= 1, the caller included.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls job(worker) once on every worker and returns when all are done. Not reentrant. The job must not
  // throw.
  template <typename Job>
  void run(Job&& job) {
    if (threads_.empty()) {
      job(Worker{0, 1});
      return;
    }
    run_erased(
        [](void* context, Worker worker) { (*static_cast<std::remove_reference_t<Job>*>(context))(worker); },
        const_cast<void*>(static_cast<const void*>(&job)));
  }

 private:
  using ErasedJob = void (*)(void* context, Worker worker);
  void run_erased(ErasedJob job, void* context);
  void work();
  // Runs shares of job `generation` until none is left to claim.
  void claim_shares(uint32_t generation);
  uint32_t generation() const {
    return static_cast<uint32_t>(next_share_.load(std::memory_order_acquire) >> 32);
  }

  std::vector<std::thread> threads_;
  ErasedJob job_ = nullptr;
  void* context_ = nullptr;
  // Number of the job in the upper half, of its next unclaimed share in the lower: a claim succeeds only
  // while its job is the current one.
  std::atomic<uint64_t> next_share_{0};
  std::atomic<int> unfinished_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  int parked_ = 0;  // guarded by mutex_
};

}  // namespace outrider
