// SPDX-License-Identifier: Apache-2.0
#include "server/http/worker_task.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <memory>
#include <utility>

namespace outrider {

struct WorkerTaskState {
  std::atomic<bool> is_skipped = false;  // set when nobody waits for the job
  // Only the I/O thread uses these:
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

Connection::Task<bool> run_on_worker(Connection& connection, std::function<void()> job,
                                     std::function<bool()> ends) {
  const auto state = std::make_shared<WorkerTaskState>();
  state->waiter = &connection;
  const WorkerTaskWaiter guard(state.get());
  connection.service().worker->submit(
      [state, job = std::move(job), executor = connection.stream().get_executor()] {
        if (state->is_skipped) return;
        job();
        boost::asio::post(executor, [state] {
          state->is_done = true;
          if (state->waiter != nullptr) state->waiter->wake();
        });
      });
  constexpr auto kLong = std::chrono::hours(1);
  while (!state->is_done && !connection.is_gone() && !ends()) co_await connection.wait(kLong);
  co_return state->is_done;
}

}  // namespace outrider
