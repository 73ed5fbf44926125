// SPDX-License-Identifier: Apache-2.0
#include "server/calls/engine_loop.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <thread>

#include "base/clock.h"
#include "server/telemetry/request_log.h"

namespace outrider {
namespace {

constexpr double kStatusAge = 50;  // milliseconds
constexpr auto kPauseAfterFailure = std::chrono::milliseconds(10);

ChoiceDelta copied(const Progress& progress) {
  ChoiceDelta delta;
  delta.text = progress.text;
  delta.tokens.assign(progress.tokens.begin(), progress.tokens.end());
  delta.origins.assign(progress.origins.begin(), progress.origins.end());
  delta.logprobs.assign(progress.logprobs.begin(), progress.logprobs.end());
  delta.prompt_logprobs.assign(progress.prompt_logprobs.begin(), progress.prompt_logprobs.end());
  delta.states.assign(progress.states.begin(), progress.states.end());
  if (progress.completion != nullptr) delta.completion = *progress.completion;
  return delta;
}

// For the few bytes without which a client would wait for ever.
template <typename Action>
void until_memory_is_there(Action&& action) {
  while (true) {
    try {
      return action();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kPauseAfterFailure);
    }
  }
}

}  // namespace

EngineLoop::EngineLoop(Open open, Events events)
    : open_(std::move(open)), events_(std::move(events)), thread_([this] { run(); }) {}

EngineLoop::~EngineLoop() { stop(); }

void EngineLoop::submit(CallNumber call, std::vector<Request> requests, bool wants_traces) {
  const std::lock_guard lock(mutex_);
  commands_.push_back({.call = call, .requests = std::move(requests), .wants_traces = wants_traces});
  wake();
}

void EngineLoop::offer(CallNumber call, TokenTree tree) {
  const std::lock_guard lock(mutex_);
  commands_.push_back({.call = call, .requests = {}, .tree = std::move(tree)});
  wake();
}

void EngineLoop::post(Task task) {
  const std::lock_guard lock(mutex_);
  if (stops_ || has_ended_) return;
  commands_.push_back({.task = std::move(task)});
  wake();
}

Status EngineLoop::run_between_steps(std::function<Status(Engine&)> task) {
  auto done = std::make_shared<std::promise<Status>>();
  std::future<Status> outcome = done->get_future();
  post([task = std::move(task), done = std::move(done)](Engine& engine) {
    try {
      done->set_value(task(engine));
    } catch (const std::exception& error) {
      done->set_value(resource_error(error.what()));
    }
  });
  try {
    return outcome.get();
  } catch (const std::future_error&) {  // the loop has ended, or ends before it comes to the task
    return resource_error("the server is shutting down");
  }
}

bool EngineLoop::cancel(CallNumber call) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    commands_.push_back({.call = call, .requests = {}});
  } catch (const std::bad_alloc&) {
    return false;
  }
  wake();
  return true;
}

void EngineLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    wake();
  }
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  commands_.clear();
}

std::vector<CallUpdate> EngineLoop::take_updates() {
  const std::lock_guard lock(mutex_);
  is_announced_ = false;
  return std::exchange(updates_, {});
}

EngineStatus EngineLoop::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void EngineLoop::wake() {
  mail_.notify_one();
  if (opened_ != nullptr) opened_->interrupt();
}

void EngineLoop::run() {
  try {
    auto opened = open_();
    if (!opened.ok()) {
      events_.failed(opened.error());
      return drop_commands();
    }
    engine_ = std::move(opened).value();
    {
      const std::lock_guard lock(mutex_);
      opened_ = engine_.get();
    }
    hand_over(true);
    events_.opened(*engine_);
    serve();
  } catch (const std::bad_alloc&) {
    events_.failed(resource_error("out of memory; a smaller --ctx, --max-batch or --max-queue needs less"));
  } catch (const std::exception& error) {
    events_.failed(io_error(error.what()));
  }
  drop_commands();
}

// Nobody waits for a task any more.
void EngineLoop::drop_commands() {
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  commands_.clear();
}

void EngineLoop::serve() {
  std::vector<Command> commands;
  bool is_idle = true;
  while (take_commands(is_idle, commands)) {
    try {
      is_idle = advance(commands);
    } catch (const std::exception&) {
      if (!engine_->is_usable()) throw;
      log_failure("engine_loop_failed", std::current_exception());
      is_idle = false;  // what is left to do is tried again
      std::this_thread::sleep_for(kPauseAfterFailure);
    }
  }
}

bool EngineLoop::advance(std::vector<Command>& commands) {
  for (Command& command : commands) {
    try {
      execute(command);
    } catch (const std::exception&) {
      log_failure("submit_failed", std::current_exception());
      if (command.task) continue;
      until_memory_is_there([&] { running_[command.call].is_lost = has_lost_calls_ = true; });
    }
  }
  commands.clear();
  update_tracing();
  const bool is_idle = step();
  fail_lost_calls();
  hand_over(is_idle);
  return is_idle;
}

// A step that throws ends the sequences that ran in it.
bool EngineLoop::step() {
  try {
    return !engine_->step();
  } catch (const std::exception&) {
    if (!engine_->is_usable()) throw;
    log_failure("step_failed", std::current_exception());
    return false;
  }
}

void EngineLoop::execute(Command& command) {
  if (command.task) return command.task(*engine_);
  if (!command.requests.empty()) return begin(command);
  if (!command.tree) return cancel_requests(command.call);
  const auto found = running_.find(command.call);
  if (found != running_.end()) engine_->offer(found->second.requests.front(), *std::move(command.tree));
}

void EngineLoop::cancel_requests(CallNumber call) {
  const auto found = running_.find(call);
  if (found == running_.end()) return;
  for (const RequestId request : found->second.requests) engine_->cancel(request);
}

// Waits while the engine is idle and there are no commands. False: the thread must stop.
bool EngineLoop::take_commands(bool is_idle, std::vector<Command>& commands) {
  std::unique_lock lock(mutex_);
  if (is_idle) mail_.wait(lock, [this] { return stops_ || !commands_.empty(); });
  commands.swap(commands_);
  return !stops_;
}

void EngineLoop::begin(Command& command) {
  const CallNumber call = command.call;
  Running& running = running_[call];
  running.requests.reserve(command.requests.size());
  running.unfinished = command.requests.size();
  running.wants_traces = command.wants_traces;
  const size_t updates_before = step_updates_.size();
  step_updates_.push_back({.kind = CallUpdate::Kind::kAccepted, .call = call});
  int choice = 0;
  for (Request& request : command.requests) {
    auto submitted = engine_->submit(
        std::move(request),
        [this, call, choice](RequestId, const Progress& progress) { on_progress(call, choice, progress); });
    const auto found = running_.find(call);  // a request for no tokens ends within submit()
    if (!submitted.ok()) {
      cancel_requests(call);
      end(call);
      step_updates_.resize(updates_before);
      step_updates_.push_back(
          {.kind = CallUpdate::Kind::kRefused, .call = call, .refusal = submitted.error()});
      return;
    }
    if (found == running_.end()) break;
    found->second.requests.push_back(*submitted);
    if (command.wants_traces) traced_[*submitted] = {call, choice};
    ++choice;
  }
}

void EngineLoop::end(CallNumber call) {
  const auto found = running_.find(call);
  if (found == running_.end()) return;
  for (const RequestId request : found->second.requests) traced_.erase(request);
  running_.erase(found);
}

// Cancels the calls that have lost an update, and tells their clients.
void EngineLoop::fail_lost_calls() {
  if (!has_lost_calls_) return;
  std::vector<CallNumber> lost;
  for (const auto& [call, running] : running_) {
    if (running.is_lost) lost.push_back(call);
  }
  for (const CallNumber call : lost) {
    step_updates_.push_back({.kind = CallUpdate::Kind::kFailed, .call = call});
    cancel_requests(call);
    end(call);
  }
  has_lost_calls_ = false;
}

void EngineLoop::on_progress(CallNumber call, int choice, const Progress& progress) {
  const auto found = running_.find(call);
  if (found == running_.end() || found->second.is_lost) return;  // it was refused, or ends after this step
  try {
    step_updates_.push_back({.call = call, .choice = choice, .delta = copied(progress)});
  } catch (const std::exception&) {
    log_failure("update_failed", std::current_exception());
    found->second.is_lost = has_lost_calls_ = true;
    return;
  }
  // A traced call ends in update_tracing(), because the trace of this step arrives after its last delta.
  if (progress.completion != nullptr && --found->second.unfinished == 0 && !found->second.wants_traces)
    end(call);
}

// Adds the trace to the delta that this step made for the choice, or to a separate delta.
void EngineLoop::on_trace(const StepTrace& trace) {
  const auto found = traced_.find(trace.request);
  if (found == traced_.end()) return;
  const auto [call, choice] = found->second;
  const auto same = std::find_if(
      step_updates_.rbegin(), step_updates_.rend(), [call = call, choice = choice](auto& update) {
        return update.call == call && update.choice == choice && update.kind == CallUpdate::Kind::kProgress;
      });
  CallUpdate& update = same != step_updates_.rend()
                           ? *same
                           : step_updates_.emplace_back(CallUpdate{.call = call, .choice = choice});
  update.delta.trace = trace;
}

// Runs before each step: forgets traced calls that ended in the last step, and traces while any call wants
// it.
void EngineLoop::update_tracing() {
  if (is_tracing_) {
    std::vector<CallNumber> ended;
    for (const auto& [call, running] : running_) {
      if (running.unfinished == 0) ended.push_back(call);
    }
    for (const CallNumber call : ended) end(call);
  }
  if (is_tracing_ == !traced_.empty()) return;
  is_tracing_ = !traced_.empty();
  engine_->set_trace_sink(is_tracing_ ? TraceSink([this](const StepTrace& trace) { on_trace(trace); })
                                      : TraceSink());
}

void EngineLoop::hand_over(bool is_idle) {
  const double now = now_ms();
  const bool is_old = is_idle || now - status_ms_ > kStatusAge;
  EngineStatus status;
  if (is_old) status = engine_->status();
  bool announces = false;
  {
    const std::lock_guard lock(mutex_);
    updates_.reserve(updates_.size() + step_updates_.size());  // nothing of them is lost where this throws
    if (is_old) status_ = std::move(status);
    std::move(step_updates_.begin(), step_updates_.end(), std::back_inserter(updates_));
    announces = !updates_.empty() && !is_announced_;
    is_announced_ = is_announced_ || announces;
  }
  if (is_old) status_ms_ = now;
  step_updates_.clear();
  if (announces) events_.has_updates();
}

}  // namespace outrider
