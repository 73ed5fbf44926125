// SPDX-License-Identifier: Apache-2.0
#include "server/http/prepared_answer.h"

#include <memory>
#include <optional>
#include <utility>

#include "server/http/worker_task.h"

namespace outrider {
struct PreparedReply {
  ReceivedBody body;
  BodyFunction function;
  std::optional<ApiResult<std::string>> made;
};

// Counts as one call for as long as it lives, since these requests wait for the worker like any call.
class LiveCallPlace {
 public:
  explicit LiveCallPlace(LiveCalls* calls) : calls_(calls) { calls_->take_place(); }
  ~LiveCallPlace() { calls_->give_place(); }
  LiveCallPlace(const LiveCallPlace&) = delete;
  LiveCallPlace& operator=(const LiveCallPlace&) = delete;

 private:
  LiveCalls* calls_;
};

BodyFunction body_function(const Exchange& exchange, TextFunction function) {
  const ServedModel* model = &exchange.connection->service().model;
  return [model, function](std::string_view body) { return function(body, *model, {}); };
}

Connection::Task<bool> answer_prepared(Exchange& exchange, BodyFunction function) {
  Connection& connection = *exchange.connection;
  const LiveCallPlace place(&connection.service().calls);
  const auto prepared = std::make_shared<PreparedReply>();
  PreparationWorker& worker = connection.service().workers->worker_for(exchange.body.bound());
  prepared->body = std::move(exchange.body);
  prepared->function = std::move(function);
  std::function<void()> job = [prepared] {
    const auto text = prepared->body.take_text();
    prepared->made = text.ok() ? prepared->function(*text) : text;
  };
  std::function<bool()> ends = [] { return false; };
  connection.start_watch();
  const bool is_done = co_await run_on_worker(connection, worker, std::move(job), std::move(ends));
  co_await connection.stop_watch();
  if (!is_done || connection.is_gone()) co_return false;
  ApiResult<std::string>& made = *prepared->made;
  const Reply reply =
      made.ok() ? Reply{.body = std::move(made).value()} : error_reply(exchange, made.error());
  co_return co_await send(exchange, reply);
}

}  // namespace outrider
