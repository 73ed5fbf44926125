// SPDX-License-Identifier: Apache-2.0
#include "server/calls/preparation_worker.h"

#include <exception>
#include <utility>

#include "server/telemetry/request_log.h"

namespace outrider {

PreparationWorker::PreparationWorker() : thread_([this] { run(); }) {}

PreparationWorker::~PreparationWorker() { stop(); }

void PreparationWorker::submit(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  changed_.notify_one();
}

void PreparationWorker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void PreparationWorker::run() {
  while (true) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stops_ || !jobs_.empty(); });
      if (stops_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    try {
      job();
    } catch (const std::exception&) {
      log_failure("preparation_failed", std::current_exception());
    }
  }
}

}  // namespace outrider
