// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "outrider/engine.h"
#include "server/api/choice_delta.h"

namespace outrider {

// Identifies a call for as long as the server runs.
using CallNumber = uint64_t;

// An update about a call, from the engine's thread to the I/O thread.
struct CallUpdate {
  enum class Kind : uint8_t {
    kAccepted,  // the engine has queued all its requests
    kRefused,   // `refusal` is the reason; this is the last update
    kFailed,    // an exception has ended the call; this is the last update
    kProgress,  // `delta` of one choice
  };
  Kind kind = Kind::kProgress;
  CallNumber call = 0;
  int choice = 0;
  ChoiceDelta delta = {};
  Error refusal = {};
};

// The thread that owns the engine. It opens the engine, takes commands from a mailbox between steps, and
// hands over all updates of a step at once, so that the next step runs while the I/O thread delivers them. An
// exception ends the calls that it concerns. The loop ends where the engine cannot go on.
class EngineLoop {
 public:
  using Open = std::function<Result<std::unique_ptr<Engine>>()>;

  // Callbacks on the engine's thread.
  struct Events {
    std::function<void(const Engine&)> opened;  // may read properties that never change
    std::function<void(const Error&)> failed;   // opening failed, or the engine cannot go on; the thread ends
    std::function<void()> has_updates;          // at most once before take_updates()
  };

  EngineLoop(Open open, Events events);
  ~EngineLoop();  // stops

  void submit(CallNumber call, std::vector<Request> requests, bool wants_traces);
  // Offers the next tree of a call with one request (Engine::offer()).
  void offer(CallNumber call, TokenTree tree);
  // Runs a task on the engine's thread between two steps, and waits for it, on another thread. Errors of the
  // task, and kResource: the thread has ended or ends.
  Status run_between_steps(std::function<Status(Engine&)> task);
  // Cancels the requests of a call before the next step. Their last updates still arrive. Unknown calls are
  // ignored. False: there is no memory for the order.
  bool cancel(CallNumber call) noexcept;
  // Runs a task between two steps. It is destroyed unrun where the loop ends before.
  using Task = std::function<void(Engine&)>;
  void post(Task task);
  // Ends the thread after the current step, and waits for that. No callback comes after it.
  void stop();

  std::vector<CallUpdate> take_updates();
  // The status, at most kStatusAge old or as of when the engine became idle.
  EngineStatus status() const;

 private:
  struct Command {
    CallNumber call = 0;
    std::vector<Request> requests = {};  // empty without a tree and a task: cancel
    bool wants_traces = false;
    std::optional<TokenTree> tree = {};
    Task task = {};
  };
  struct Running {
    std::vector<RequestId> requests;  // by index of the choice
    size_t unfinished = 0;
    bool wants_traces = false;
    bool is_lost = false;  // an update of it could not be kept
  };

  // Somebody holds the mutex: lets the engine's thread look at the commands.
  void wake();
  void run();
  void serve();
  // Executes what came, makes a step and hands over its updates. True: the engine is idle.
  bool advance(std::vector<Command>& commands);
  bool step();
  void drop_commands();
  bool take_commands(bool is_idle, std::vector<Command>& commands);
  void execute(Command& command);
  void begin(Command& command);
  void cancel_requests(CallNumber call);
  void end(CallNumber call);
  void fail_lost_calls();
  void on_progress(CallNumber call, int choice, const Progress& progress);
  void on_trace(const StepTrace& trace);
  void update_tracing();
  void hand_over(bool is_idle);

  Open open_;
  Events events_;

  // Only the engine's thread uses these:
  std::unique_ptr<Engine> engine_;
  std::unordered_map<CallNumber, Running> running_;
  std::unordered_map<RequestId, std::pair<CallNumber, int>> traced_;
  bool is_tracing_ = false;
  std::vector<CallUpdate> step_updates_;
  bool has_lost_calls_ = false;
  double status_ms_ = 0;  // when status_ was taken

  mutable std::mutex mutex_;
  std::condition_variable mail_;
  std::vector<Command> commands_;
  Engine* opened_ = nullptr;  // engine_, as other threads see it
  bool stops_ = false;
  bool has_ended_ = false;  // no command is taken any more
  std::vector<CallUpdate> updates_;
  bool is_announced_ = false;
  EngineStatus status_;

  std::thread thread_;  // last, since it uses all members above
};

}  // namespace outrider
