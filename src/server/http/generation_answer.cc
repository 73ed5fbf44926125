// SPDX-License-Identifier: Apache-2.0
#include "server/http/generation_answer.h"

#include <fmt/format.h>

#include <ctime>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "server/calls/random_id.h"
#include "server/http/worker_task.h"

namespace outrider {
namespace {

constexpr auto kLong = std::chrono::hours(1);

using CallPointer = std::shared_ptr<LiveCall>;

CallPointer open_call(Exchange& exchange) {
  LiveCall call;
  call.id = exchange.id;
  call.request_id = exchange.client_id;
  call.route = exchange.admission.match.row->pattern;
  call.scope = exchange.admission.scope;
  call.arrived_ms = exchange.arrived_ms;
  call.client = client_of(exchange);
  call.model = exchange.connection->service().model.name;
  call.is_background = exchange.admission.is_background;
  call.has_time_limit = !call.is_background;
  call.is_logged = is_logged(exchange) && !call.is_background;
  CallPointer opened = exchange.connection->service().calls.open(std::move(call));
  opened->wake = [connection = exchange.connection] { connection->wake(); };
  return opened;
}

}  // namespace

// Cancels an unfinished call however the coroutine ends.
class CallGuard {
 public:
  CallGuard(Service* service, CallPointer call) : service_(service), call_(std::move(call)) {}
  ~CallGuard() {
    call_->wake = nullptr;
    if (!call_->is_finished && !call_->is_abandoned) service_->calls.abandon(*call_, *service_->engine);
  }
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

 private:
  Service* service_;
  CallPointer call_;
};

namespace {

std::function<void()> parsing_job(Exchange& exchange, const CallPointer& call,
                                  const std::shared_ptr<std::optional<ApiError>>& error) {
  const auto parse = std::get<ParseFunction>(exchange.admission.match.row->function);
  Service& service = exchange.connection->service();
  CallContext context;
  context.model = &service.model;
  context.responses = &service.responses;
  context.limits = api_limits(service);
  context.id = exchange.id;
  context.created = std::time(nullptr);
  context.random_seed = random_seed();
  context.cache_scope = exchange.admission.scope;
  return [parse, context = std::move(context), body = std::move(exchange.body), call, error]() mutable {
    const auto text = body.take_text();
    auto parsed = text.ok() ? parse_call(parse, *text, context) : ParsedCall(text.error());
    if (parsed.ok()) {
      call->generation = std::move(parsed).value();
      for (Request& request : call->generation->requests()) request.is_background = call->is_background;
    } else {
      *error = parsed.error();
    }
  };
}

Reply stream_reply(const GenerationCall& call) {
  Reply reply{.content_type = std::string(call.content_type())};
  reply.headers.emplace_back("X-Accel-Buffering", "no");
  return reply;
}

// `events` as the next chunk of the body.
std::string framed(const Exchange& exchange, std::string_view events) {
  return exchange.is_chunked ? fmt::format("{:x}\r\n{}\r\n", events.size(), events) : std::string(events);
}

// The events to write now; empty: none.
std::string next_events(Service& service, LiveCall& call, bool is_silent) {
  if (call.events.empty() && !call.error) service.calls.release_held(call);
  std::string events = std::exchange(call.events, {});
  if (call.error) events += call.generation->error_events(*call.error);
  if (events.empty() && is_silent && !call.is_finished) events = call.generation->ping();
  return events;
}

Connection::Task<bool> write_stream(Exchange& exchange, LiveCall& call) {
  Connection& connection = *exchange.connection;
  Service& service = connection.service();
  service.metrics.on_response(200);
  if (!exchange.is_chunked) exchange.keeps_alive = false;
  const Reply reply = stream_reply(*call.generation);
  const std::string header = header_text(exchange, reply, -1);
  exchange.is_answered = true;
  bool is_sent = co_await connection.write(header);
  auto written_at = Connection::Clock::now();
  while (is_sent && !connection.is_gone()) {
    const bool is_silent = Connection::Clock::now() - written_at >= service.limits.ping_interval;
    const bool is_error = call.error.has_value();
    const std::string events = next_events(service, call, is_silent);
    if (!events.empty()) {
      const std::string piece = framed(exchange, events);
      call.writing_bytes = piece.size();
      is_sent = co_await connection.write(piece);
      call.writing_bytes = 0;
      written_at = Connection::Clock::now();
      if (!is_error) continue;
    }
    if (is_error || call.is_finished) break;
    co_await connection.wait(service.limits.ping_interval);
  }
  if (call.error) exchange.keeps_alive = false;
  if (is_sent && exchange.is_chunked && !connection.is_gone()) {
    constexpr std::string_view kEnd = "0\r\n\r\n";
    is_sent = co_await connection.write(kEnd);
  }
  co_return is_sent;
}

// Waits until the engine has accepted or refused a call that streams, since a refusal has another status, and
// until any other call has finished.
Connection::Task<void> wait_for_engine(Exchange& exchange, const LiveCall& call) {
  Connection& connection = *exchange.connection;
  const bool streams = call.generation->streams();
  while (!connection.is_gone() && !call.error && !call.is_finished && !(streams && call.is_accepted)) {
    co_await connection.wait(kLong);
  }
}

Connection::Task<bool> generate(Exchange& exchange, CallPointer call) {
  Connection& connection = *exchange.connection;
  Service& service = connection.service();
  const auto error = std::make_shared<std::optional<ApiError>>();
  PreparationWorker& worker = service.workers->worker_for(exchange.body.bound());
  std::function<void()> job = parsing_job(exchange, call, error);
  std::function<bool()> ends = [call] { return call->error.has_value(); };
  const bool is_prepared = co_await run_on_worker(connection, worker, std::move(job), std::move(ends));
  if (connection.is_gone()) co_return false;
  if (!is_prepared || *error || call->error) {
    service.calls.close(*call);
    call->is_finished = true;
    const Reply reply = error_reply(exchange, *error ? **error : *call->error);
    co_return co_await send(exchange, reply);
  }
  const auto more = static_cast<int>(call->generation->requests().size()) - 1;  // the call counts already
  std::optional<ApiError> crowd = call->is_background ? std::nullopt : key_crowd(service, call->scope, more);
  if (!crowd && !service.calls.submit(*call, *service.engine)) crowd = queue_full_error(service);
  if (crowd) {
    service.calls.close(*call);
    call->is_finished = true;
    const Reply reply = error_reply(exchange, *crowd);
    co_return co_await send(exchange, reply);
  }
  co_await wait_for_engine(exchange, *call);
  if (connection.is_gone()) co_return false;
  if (call->error && !(call->generation->streams() && call->is_accepted)) {
    const Reply reply = error_reply(exchange, *call->error);
    co_return co_await send_unlogged(exchange, reply);
  }
  if (call->generation->streams()) co_return co_await write_stream(exchange, *call);
  const Reply reply{.body = call->generation->body()};
  co_return co_await send_unlogged(exchange, reply);
}

}  // namespace

Connection::Task<bool> answer_generation(Exchange& exchange) {
  Connection& connection = *exchange.connection;
  const CallPointer call = open_call(exchange);
  const CallGuard guard(&connection.service(), call);
  connection.start_watch();
  const bool is_sent = co_await generate(exchange, call);
  const bool is_gone = connection.is_gone();
  if (is_gone && !call->is_finished) connection.service().metrics.on_disconnect();
  co_await connection.stop_watch();
  co_return is_sent && !is_gone;
}

}  // namespace outrider
