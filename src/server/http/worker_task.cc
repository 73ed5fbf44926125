// SPDX-License-Identifier: Apache-2.0
#include "server/http/worker_task.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

namespace outrider {

struct WorkerTaskState {
  std::atomic<bool> is_skipped = false;  // set when nobody waits for the job
  // Only the I/O thread uses these after the job:
  std::exception_ptr failure;
  bool is_done = false;
  Connection* waiter = nullptr;  // null: nobody waits
};

// Removes the waiter however the coroutine ends.
class WorkerTaskWaiter {
 public:
  explicit WorkerTaskWaiter(WorkerTaskState* state) : state_(state) {}
  ~WorkerTaskWaiter() {
    state_->waiter = nullptr;
    state_->is_skipped = true;
  }
  WorkerTaskWaiter(const WorkerTaskWaiter&) = delete;
  WorkerTaskWaiter& operator=(const WorkerTaskWaiter&) = delete;

 private:
  WorkerTaskState* state_;
};

namespace {

// Tells the I/O thread that the job is done, as soon as there is memory for the message.
void report(const boost::asio::any_io_executor& executor, const std::shared_ptr<WorkerTaskState>& state) {
  while (!state->is_skipped) {
    try {
      return boost::asio::post(executor, [state] {
        state->is_done = true;
        if (state->waiter != nullptr) state->waiter->wake();
      });
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace

Connection::Task<bool> run_on_worker(Connection& connection, PreparationWorker& worker,
                                     std::function<void()> job, std::function<bool()> ends) {
  const auto state = std::make_shared<WorkerTaskState>();
  state->waiter = &connection;
  const WorkerTaskWaiter guard(state.get());
  worker.submit([state, job = std::move(job), executor = connection.stream().get_executor()] {
    if (state->is_skipped) return;
    try {
      job();
    } catch (...) {
      state->failure = std::current_exception();
    }
    report(executor, state);
  });
  constexpr auto kLong = std::chrono::hours(1);
  while (!state->is_done && !connection.is_gone() && !ends()) co_await connection.wait(kLong);
  // The worker may let go of the state at any time, and the exception belongs to this thread now.
  if (state->is_done && state->failure != nullptr)
    std::rethrow_exception(std::exchange(state->failure, nullptr));
  co_return state->is_done;
}

}  // namespace outrider
