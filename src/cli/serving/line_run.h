// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "outrider/result.h"
#include "server/batch/batch_run.h"
#include "server/calls/line_calls.h"
#include "server/server.h"

namespace outrider {

// An engine that runs lines of batches as a server would, in this process and without sockets. One thread
// uses it, and its callbacks are called on that thread.
class LineRun {
 public:
  // `id`: of the request.
  using Done = std::function<void(const std::string& id, const LineAnswer& answer)>;

  // Opens the engine. Error: the model could not be opened.
  static Result<std::unique_ptr<LineRun>> open(ServerParts parts);
  ~LineRun();
  LineRun(const LineRun&) = delete;
  LineRun& operator=(const LineRun&) = delete;

  int places() const {
    return 2 * parts_.max_batch;
  }  // lines that run at a time, so that the batch stays full
  int running() const { return running_; }
  // `done` is called within start() or within wait().
  void start(const BatchLine& line, Done done);
  // Waits until something happens, at most `time`. Error: the engine cannot go on.
  Status wait(std::chrono::milliseconds time);

 private:
  explicit LineRun(ServerParts parts);

  void post(std::function<void()> job);
  EngineLoop::Events events();

  ServerParts parts_;
  std::optional<ServedModel> model_;  // once the engine is open
  std::optional<Error> failure_;
  ServerMetrics metrics_;
  LiveCalls calls_;
  int running_ = 0;

  std::mutex mutex_;
  std::condition_variable mail_;
  std::deque<std::function<void()>> jobs_;  // from the engine's thread

  std::unique_ptr<EngineLoop> engine_;
  std::unique_ptr<LineCalls> lines_;
};

}  // namespace outrider
