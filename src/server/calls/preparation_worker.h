// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace outrider {

// One thread for work that would block the I/O thread for too long: templates, tokens, grammars. Jobs run in
// order.
class PreparationWorker {
 public:
  PreparationWorker();
  ~PreparationWorker();  // finishes the current job and drops the others

  // The caller limits the number of waiting jobs.
  void submit(std::function<void()> job);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace outrider
