// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace outrider {

// One thread for what takes too long between two reads of a socket: templates, tokens, grammars. In order.
class PreparationWorker {
 public:
  PreparationWorker();
  ~PreparationWorker();  // finishes the current job; the others are dropped

  // The caller bounds how many jobs wait.
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
