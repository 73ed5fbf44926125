// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "outrider/engine.h"
#include "server/api/generation_call.h"

namespace outrider {

// Names a call for the time the server runs.
using CallNumber = uint64_t;

// What the engine's thread tells of a call.
struct CallNews {
  enum class Kind : uint8_t {
    kAccepted,  // all its requests are queued
    kRefused,   // `refusal` says why; nothing more comes
    kProgress,  // `news` of one choice
  };
  Kind kind = Kind::kProgress;
  CallNumber call = 0;
  int choice = 0;
  ChoiceDelta delta = {};
  Error refusal = {};
};

// The thread that owns the engine: opens it, takes calls from a mailbox between steps, and hands over what a
// step brought all at once, so that the next step begins while others deliver.
class EngineLoop {
 public:
  using Open = std::function<Result<std::unique_ptr<Engine>>()>;

  // Called on the engine's thread.
  struct Events {
    std::function<void(const Engine&)> opened;  // for reading what never changes
    std::function<void(const Error&)> failed;   // it could not be opened, or a step threw; the thread ends
    std::function<void()> has_news;             // not again before take_news()
  };

  EngineLoop(Open open, Events events);
  ~EngineLoop();  // stops

  void submit(CallNumber call, std::vector<Request> requests, bool wants_traces);
  // Its requests are cancelled before the next step; their last news still comes. Unknown calls are ignored.
  void cancel(CallNumber call);
  // Ends the thread after the current step.
  void stop();

  std::vector<CallNews> take_news();
  // As it was less than kStatusAge ago, or when the engine became idle.
  EngineStatus status() const;

 private:
  struct Command {
    CallNumber call = 0;
    std::vector<Request> requests;  // empty: cancel
    bool wants_traces = false;
  };
  struct Running {
    std::vector<RequestId> requests;  // by choice
    size_t unfinished = 0;
    bool wants_traces = false;
  };

  void run();
  void serve();
  bool take_commands(bool is_idle, std::vector<Command>& commands);
  void begin(Command& command);
  void end(CallNumber call);
  void on_progress(CallNumber call, int choice, const Progress& progress);
  void on_trace(const StepTrace& trace);
  void update_tracing();
  void hand_over(bool is_idle);

  Open open_;
  Events events_;

  // Of the engine's thread alone:
  std::unique_ptr<Engine> engine_;
  std::unordered_map<CallNumber, Running> running_;
  std::unordered_map<RequestId, std::pair<CallNumber, int>> traced_;
  bool is_tracing_ = false;
  std::vector<CallNews> step_news_;
  double status_ms_ = 0;  // when status_ was taken

  mutable std::mutex mutex_;
  std::condition_variable mail_;
  std::vector<Command> commands_;
  bool stops_ = false;
  std::vector<CallNews> news_;
  bool is_announced_ = false;
  EngineStatus status_;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace outrider
