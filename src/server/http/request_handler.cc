// SPDX-License-Identifier: Apache-2.0
#include "server/http/request_handler.h"

#include <exception>
#include <new>
#include <optional>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "server/api/request_field.h"
#include "server/calls/random_id.h"
#include "server/http/batch_answer.h"
#include "server/http/drafting_answer.h"
#include "server/http/exchange.h"
#include "server/http/fleet_answer.h"
#include "server/http/generation_answer.h"
#include "server/http/prepared_answer.h"
#include "server/http/request_reader.h"
#include "server/http/slot_answer.h"

namespace outrider {
namespace {

// The answer to a CORS preflight of an allowed origin.
std::optional<Reply> preflight(const Service& service, const RequestHeader& header) {
  if (header.method != "OPTIONS" || allowed_origin(service.options, header.origin).empty())
    return std::nullopt;
  Reply reply{.status = 204, .content_type = ""};
  reply.headers = {{"Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE"},
                   {"Access-Control-Allow-Headers", allowed_headers(header)},
                   {"Access-Control-Max-Age", "600"}};
  return reply;
}

Reply refusal_reply(const Exchange& exchange, const Refusal& refusal) {
  Reply reply = error_reply(exchange, refusal.error);
  if (!refusal.allow.empty()) reply.headers.emplace_back("Allow", refusal.allow);
  if (refusal.error.status != 401) return reply;
  // With Basic, a browser asks for the key of the page and sends it with the page's own requests.
  const auto path = served_path(exchange.connection->service().options, exchange.header.target);
  reply.headers.emplace_back(
      "WWW-Authenticate", path == "/" ? "Basic realm=\"outrider: any name, a key as password\"" : "Bearer");
  return reply;
}

Connection::Task<bool> dispatch(Exchange& exchange) {
  Service& service = exchange.connection->service();
  const RouteRow& row = *exchange.admission.match.row;
  if (row.is_of_batches()) co_return co_await answer_batch(exchange);
  if (service.fleet != nullptr) co_return co_await answer_by_fleet(exchange);
  const bool takes_place = row.is_queued() && !exchange.admission.is_background;
  if (takes_place && service.calls.is_full()) {  // the queue may have filled while the body was read
    const Reply refused = error_reply(exchange, queue_full_error(service));
    co_return co_await send(exchange, refused);
  }
  if (std::holds_alternative<ParseFunction>(row.function)) co_return co_await answer_generation(exchange);
  if (const auto* function = std::get_if<TextFunction>(&row.function))
    co_return co_await answer_prepared(exchange, body_function(exchange, *function));
  if (std::holds_alternative<SlotAction>(row.function))
    co_return co_await answer_prepared(exchange, slot_function(exchange));
  const PlainCall call = {.argument = exchange.admission.match.argument, .scope = exchange.admission.scope};
  const Reply reply = std::get<PlainFunction>(row.function)(service, call);
  co_return co_await send(exchange, reply);
}

void set_ids(Exchange& exchange) {
  if (!exchange.id.empty()) return;
  exchange.id = random_id();
  exchange.client_id = exchange.header.request_id.empty() ? exchange.id : exchange.header.request_id;
  const bool begins_trace = !exchange.header.trace && exchange.connection->service().traces != nullptr;
  if (begins_trace) exchange.header.trace = TraceContext{.trace_id = random_id(), .is_sampled = true};
  if (exchange.header.trace) exchange.header.trace->span_id = random_id().substr(0, 16);
}

// Answers bytes that are no valid request. The connection ends.
Connection::Task<bool> send_last(Exchange& exchange, const ApiError& error) {
  set_ids(exchange);
  exchange.keeps_alive = false;
  const Reply reply = error_reply(exchange, error);
  co_await send(exchange, reply);
  co_return false;
}

// Answers a refused request before its body is read, so that a refusal costs little time.
Connection::Task<bool> refuse(Exchange& exchange, RequestReader& reader, const Refusal& refusal) {
  exchange.keeps_alive = exchange.keeps_alive && reader.is_short();
  const Reply reply = refusal_reply(exchange, refusal);
  const bool is_sent = co_await send(exchange, reply);
  if (!is_sent || !exchange.keeps_alive) co_return false;
  co_return co_await reader.skip_body();
}

// The things that the path and the members of a body in JSON name.
std::string subject_of_request(const Exchange& exchange) {
  constexpr int kMostDepth = 8;
  std::string subject = exchange.admission.match.argument;
  const ReceivedBody& body = exchange.body;
  if (body.is_packed || body.bytes.size() > PreparationWorkers::kShortBody) return subject;
  const ApiResult<RequestBody> parsed = RequestBody::parse(body.bytes, kMostDepth);
  if (!parsed.ok()) return subject;
  for (const char* name : {"model", "name", "lora_name", "filename"}) {
    const std::optional<RequestField> field = parsed->root().find(name);
    const ApiResult<std::string> text = field ? field->string() : ApiResult<std::string>(std::string());
    if (text.ok() && !text->empty()) subject += (subject.empty() ? "" : " ") + *text;
  }
  return subject;
}

// Answers an admitted request.
Connection::Task<bool> answer_admitted(Exchange& exchange, RequestReader& reader) {
  const Service& service = exchange.connection->service();
  const HttpLimits& limits = service.limits;
  const size_t limit = exchange.admission.match.row->takes_files ? limits.upload_bytes : limits.body_bytes;
  const bool has_body = co_await reader.read_body(limit);
  if (!has_body) {
    exchange.keeps_alive = false;
    if (reader.failure()) {
      const Reply reply = error_reply(exchange, *reader.failure());
      co_await send(exchange, reply);
    }
    co_return false;
  }
  if (std::holds_alternative<DraftingUpgrade>(exchange.admission.match.row->function)) {
    co_await answer_drafting(exchange, reader);
    co_return false;
  }
  exchange.body = {.bytes = reader.take_body(),
                   .is_packed = exchange.header.content_encoding == "gzip",
                   .max_bytes = limit,
                   .account = reader.take_account()};
  const bool is_audited = service.audit != nullptr && !exchange.admission.match.row->action.empty();
  if (is_audited) exchange.subject = subject_of_request(exchange);
  const bool is_sent = co_await dispatch(exchange);
  co_return is_sent&& exchange.keeps_alive && !service.is_closing;
}

// Reads and answers the next request of the connection.
Connection::Task<bool> serve_request(Exchange& exchange) {
  Connection& connection = *exchange.connection;
  RequestReader reader(&connection);
  const bool has_header = co_await reader.read_header();
  exchange.arrived_ms = now_ms();
  if (!has_header) {
    if (reader.failure()) co_await send_last(exchange, *reader.failure());
    co_return false;
  }
  exchange.header = reader.header();
  set_ids(exchange);
  exchange.keeps_alive = reader.keeps_alive();
  exchange.is_chunked = exchange.header.is_http_1_1;
  if (const auto oversized = reader.check_sizes()) co_return co_await send_last(exchange, *oversized);
  const Service& service = connection.service();
  if (const std::optional<Reply> allowed = preflight(service, exchange.header)) {
    exchange.keeps_alive = exchange.keeps_alive && reader.is_done();
    const bool is_sent = co_await send(exchange, *allowed);
    co_return is_sent&& exchange.keeps_alive;
  }
  if (const std::optional<Refusal> refusal = admit(service, exchange.header, exchange.admission))
    co_return co_await refuse(exchange, reader, *refusal);
  co_return co_await answer_admitted(exchange, reader);
}

// The answer to a request that an exception has ended.
ApiError failure_error(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    return {.status = 503,
            .type = "unavailable_error",
            .message = "not enough memory for this request",
            .code = "out_of_memory",
            .retry_after = 1};
  } catch (...) {
    return {.status = 500, .type = "server_error", .message = "an internal error", .code = "internal_error"};
  }
}

}  // namespace

Connection::Task<bool> handle_request(Connection& connection) {
  Exchange exchange{.connection = &connection};
  std::exception_ptr failure;
  try {
    co_return co_await serve_request(exchange);
  } catch (...) {
    failure = std::current_exception();
  }
  log_failure("request_failed", failure);
  co_await connection.stop_watch();
  if (exchange.is_answered || connection.is_gone()) co_return false;
  co_return co_await send_last(exchange, failure_error(failure));
}

}  // namespace outrider
