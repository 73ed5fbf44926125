// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace outrider {

// A thread for work that would block the I/O thread for too long: templates, tokens, grammars. Jobs run in
// order. A job that throws is logged, and the next one runs.
class PreparationWorker {
 public:
  PreparationWorker();
  ~PreparationWorker();  // stops

  // The caller limits the number of waiting jobs.
  void submit(std::function<void()> job);
  // Finishes the current job, drops the others and waits for the end of the thread.
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stops_ = false;
  std::thread thread_;
};

// Two workers, so that a long prompt does not keep short ones waiting: one for bodies of up to kShortBody
// bytes, one for all others.
class PreparationWorkers {
 public:
  static constexpr size_t kShortBody = 64 << 10;

  PreparationWorker& worker_for(size_t body_bytes) { return body_bytes <= kShortBody ? short_ : long_; }
  void stop() {
    short_.stop();
    long_.stop();
  }

 private:
  PreparationWorker short_, long_;
};

}  // namespace outrider
