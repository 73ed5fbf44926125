// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"

namespace outrider {
namespace {

// This takes 50 to 200 us on current machines: longer than the gap between two kernels, too short to be
// noticed.
constexpr int kSpins = 4000;
constexpr int kSpinsPerYield = 64;

// A wait longer than this, and longer than the caller's own work, is no imbalance: a worker lost its
// processor in the middle of a share.
constexpr std::chrono::microseconds kStall{300};
// How long the caller works without the others after a stall, in lengths of the stall and at most.
constexpr int kAloneFactor = 4;
constexpr std::chrono::milliseconds kLongestAlone{50};

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // "yield" takes no time on most processors
#endif
}

// A waiting thread leaves its processor to any other that could run there, such as another process.
inline void pause_or_yield(int spins) {
  if (spins % kSpinsPerYield == kSpinsPerYield - 1) {
    std::this_thread::yield();
  } else {
    pause_cpu();
  }
}

}  // namespace

ThreadPool::ThreadPool(int threads, std::vector<int> cpus) : taken_(static_cast<size_t>(threads)) {
  OUTRIDER_CHECK(threads >= 1);
  OUTRIDER_CHECK(cpus.empty() || cpus.size() == taken_.size());
  for (int i = 1; i < threads; ++i) threads_.emplace_back([this, i] { work(i); });
  if (!cpus.empty()) pin(cpus);
}

void ThreadPool::pin(const std::vector<int>& cpus) {
  is_pinned_ = true;
  for (size_t i = 0; i < threads_.size(); ++i) {
    cpu_set_t one;
    CPU_ZERO(&one);
    const int cpu = cpus[i + 1];
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &one);
    if (pthread_setaffinity_np(threads_[i].native_handle(), sizeof(one), &one) != 0) is_pinned_ = false;
  }
  if (!is_pinned_) log_warning("cannot keep every thread on a processor of its own; going on without");
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  {
    std::lock_guard lock(mutex_);
    current_.store(Ticket::of(current().job() + 1, 0).packed);
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool ThreadPool::works_alone() {
  if (alone_until_ == Clock::time_point()) return false;
  if (Clock::now() < alone_until_) return true;
  alone_until_ = {};
  return false;
}

void ThreadPool::run_erased(int shares, ErasedJob job, void* context) {
  OUTRIDER_CHECK(shares >= 1 && shares <= kMaxShares);
  const Clock::time_point start = Clock::now();
  job_ = job;
  context_ = context;
  unfinished_.store(shares, std::memory_order_relaxed);
  const Ticket next = Ticket::of(current().job() + 1, shares);
  // Sequentially consistent with parked_: either the caller sees a worker that is about to sleep, or that
  // worker sees the job.
  current_.store(next.packed);
  if (parked_.load() > 0) {
    { std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  run_shares(next, 0);
  if (unfinished_.load(std::memory_order_acquire) != 0) wait_for_workers(start);
}

void ThreadPool::run_shares(Ticket current, int worker) {
  const int owners = may_take_over_.load(std::memory_order_relaxed) ? size() : 1;
  for (int i = 0; i < owners; ++i) {
    const int owner = (worker + i) % size();
    const Range shares = share_of({owner, size()}, current.shares());
    const auto count = static_cast<int>(shares.end - shares.begin);
    std::atomic<uint64_t>& ticket = taken_[static_cast<size_t>(owner)].ticket;
    Ticket seen{ticket.load(std::memory_order_acquire)};
    // A job ends only after all its shares were taken, so that a late worker finds nothing to take.
    while (seen.job() < current.job() || (seen.job() == current.job() && seen.shares() < count)) {
      const int taken = seen.job() < current.job() ? 0 : seen.shares();
      if (taken == count) break;
      if (!ticket.compare_exchange_weak(seen.packed, Ticket::of(current.job(), taken + 1).packed,
                                        std::memory_order_acq_rel))
        continue;
      job_(context_, Worker{static_cast<int>(shares.begin) + taken, current.shares()});
      unfinished_.fetch_sub(1, std::memory_order_release);
      seen.packed = ticket.load(std::memory_order_acquire);
    }
  }
}

void ThreadPool::wait_for_workers(Clock::time_point start) {
  const auto done = [this] { return unfinished_.load(std::memory_order_acquire) == 0; };
  const Clock::time_point waiting = Clock::now();
  for (int spins = 0; spins < kSpins; ++spins) {
    if (done()) break;
    pause_or_yield(spins);
  }
  while (!done()) std::this_thread::yield();
  const Clock::time_point end = Clock::now();
  const auto stall = end - waiting;
  if (stall < kStall || stall < waiting - start) return;
  alone_until_ = end + std::min<Clock::duration>(kAloneFactor * stall, kLongestAlone);
}

void ThreadPool::work(int worker) {
  uint64_t seen = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    for (int spins = 0; current().job() == seen && spins < kSpins; ++spins) pause_or_yield(spins);
    if (current().job() == seen) {
      std::unique_lock lock(mutex_);
      parked_.fetch_add(1);
      wake_.wait(lock, [&] { return Ticket{current_.load()}.job() != seen; });
      parked_.fetch_sub(1);
    }
    const Ticket found = current();
    seen = found.job();
    run_shares(found, worker);
  }
}

}  // namespace outrider
