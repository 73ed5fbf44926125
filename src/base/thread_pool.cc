// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include "base/check.h"

namespace outrider {
namespace {

// About 50 us on current machines: longer than the gap between two kernels, shorter than anyone notices.
constexpr int kSpins = 4000;

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  OUTRIDER_CHECK(threads >= 1);
  for (int i = 1; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  {
    std::lock_guard lock(mutex_);
    next_share_.store(uint64_t{generation() + 1} << 32 | static_cast<uint32_t>(size()),
                      std::memory_order_release);
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run_erased(ErasedJob job, void* context) {
  job_ = job;
  context_ = context;
  unfinished_.store(size(), std::memory_order_relaxed);
  const uint32_t current = generation() + 1;
  bool any_parked;
  {
    std::lock_guard lock(mutex_);
    next_share_.store(uint64_t{current} << 32, std::memory_order_release);
    any_parked = parked_ > 0;
  }
  if (any_parked) wake_.notify_all();
  claim_shares(current);
  for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spins) {
    pause_cpu();
    if (spins >= kSpins) std::this_thread::yield();
  }
}

void ThreadPool::claim_shares(uint32_t generation) {
  uint64_t next = next_share_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(next >> 32) == generation &&
         static_cast<uint32_t>(next) < static_cast<uint32_t>(size())) {
    if (!next_share_.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel)) continue;
    job_(context_, Worker{static_cast<int>(static_cast<uint32_t>(next)), size()});
    unfinished_.fetch_sub(1, std::memory_order_release);
    next = next_share_.load(std::memory_order_acquire);
  }
}

void ThreadPool::work() {
  uint32_t seen = 0;
  while (!stopping_.load()) {
    for (int spins = 0; generation() == seen && spins < kSpins; ++spins) pause_cpu();
    if (generation() == seen) {
      std::unique_lock lock(mutex_);
      ++parked_;
      wake_.wait(lock, [&] { return generation() != seen; });
      --parked_;
    }
    seen = generation();
    claim_shares(seen);
  }
}

}  // namespace outrider
