// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
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
//
// The pool is built for busy machines: nobody waits for a worker that is not running, because the others take
// over the shares it has not begun. Only a worker that loses its processor in the middle of a share delays
// the others; after that the caller works without them for a while.
class ThreadPool {
 public:
  // threads >= 1, the caller included. `cpus`: empty, or the processor of each worker; the caller's one is
  // only kept free, because the pool does not own that thread.
  explicit ThreadPool(int threads, std::vector<int> cpus = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }
  // Every worker but the caller stays on its own processor.
  bool is_pinned() const { return is_pinned_; }

  // Cuts a job into 1 <= shares <= kMaxShares and calls job({index, shares}) once for each; returns when all
  // are done. Neighbouring shares go to the same worker in every job, if it is awake. One share is done by
  // the caller on the spot. Not reentrant. The job must not throw.
  template <typename Job>
  void run(int shares, Job&& job) {
    if (shares == 1 || threads_.empty() || works_alone()) {
      for (int i = 0; i < shares; ++i) job(Worker{i, shares});
      return;
    }
    run_erased(
        shares,
        [](void* context, Worker worker) { (*static_cast<std::remove_reference_t<Job>*>(context))(worker); },
        const_cast<void*>(static_cast<const void*>(&job)));
  }
  // One share per worker.
  template <typename Job>
  void run(Job&& job) {
    run(size(), job);
  }

  // One share per worker, done by that worker even if the others have to wait for it: for memory that must be
  // first touched by the worker that will read it.
  template <typename Job>
  void run_unshared(Job&& job) {
    alone_until_ = {};
    may_take_over_.store(false, std::memory_order_relaxed);
    run(job);
    may_take_over_.store(true, std::memory_order_relaxed);
    alone_until_ = {};
  }

  static constexpr int kMaxShares = 0xFFFF;

 private:
  using ErasedJob = void (*)(void* context, Worker worker);
  using Clock = std::chrono::steady_clock;

  // Two numbers that change together: a job's, and shares (of the job, or taken from one worker).
  struct Ticket {
    uint64_t packed = 0;
    static Ticket of(uint64_t job, int shares) { return {job << 16 | static_cast<uint64_t>(shares)}; }
    uint64_t job() const { return packed >> 16; }
    int shares() const { return static_cast<int>(packed & kMaxShares); }
  };
  // How far the shares that belong to one worker are taken; a ticket of an earlier job stands for none.
  struct alignas(64) Taken {
    std::atomic<uint64_t> ticket{0};
  };

  void run_erased(int shares, ErasedJob job, void* context);
  void pin(const std::vector<int>& cpus);
  void work(int worker);
  // Runs shares of the job until none is left to take: the worker's own, then the others' shares.
  void run_shares(Ticket current, int worker);
  void wait_for_workers(Clock::time_point start);
  bool works_alone();
  Ticket current() const { return {current_.load(std::memory_order_acquire)}; }

  std::vector<std::thread> threads_;
  std::vector<Taken> taken_;  // by worker
  bool is_pinned_ = false;
  alignas(64) std::atomic<uint64_t> current_{0};
  ErasedJob job_ = nullptr;
  void* context_ = nullptr;
  // These belong to the current job. A worker that still looks for shares of an earlier job finds none.
  std::atomic<bool> may_take_over_{true};
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<int> unfinished_{0};
  alignas(64) std::atomic<int> parked_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  Clock::time_point alone_until_{};  // until then only the caller runs jobs
};

}  // namespace outrider
