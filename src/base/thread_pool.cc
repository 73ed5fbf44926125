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
  for (int i = 1; i < threads; ++i) threads_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  {
    std::lock_guard lock(mutex_);
    generation_.fetch_add(1);
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run_erased(ErasedJob job, void* context) {
  job_ = job;
  context_ = context;
  unfinished_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
  bool any_parked;
  {
    std::lock_guard lock(mutex_);
    generation_.fetch_add(1, std::memory_order_release);
    any_parked = parked_ > 0;
  }
  if (any_parked) wake_.notify_all();
  job(context, Worker{0, size()});
  for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spins) {
    pause_cpu();
    if (spins >= kSpins) std::this_thread::yield();
  }
}

void ThreadPool::work(int index) {
  uint64_t seen = 0;
  while (true) {
    for (int spins = 0; generation_.load(std::memory_order_acquire) == seen && spins < kSpins; ++spins)
      pause_cpu();
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      ++parked_;
      wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
      --parked_;
    }
    if (stopping_.load()) return;
    ++seen;
    job_(context_, Worker{index, static_cast<int>(threads_.size()) + 1});
    unfinished_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace outrider
