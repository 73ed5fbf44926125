// SPDX-License-Identifier: Apache-2.0
#include "server/http/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <iterator>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "server/http/generation_answer.h"
#include "server/http/plain_answers.h"

namespace outrider {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

using Parser = http::request_parser<http::string_body>;
using Code = boost::system::error_code;

constexpr size_t kDiscardedBody = 64 << 10;  // of a refused request that may keep its connection

std::string text_of(boost::beast::string_view view) { return {view.data(), view.size()}; }

// Reading failed: what the client is told; nothing: it only closed the connection.
std::optional<ApiError> read_error(const Connection& connection, const Code& error, bool in_head) {
  if (connection.is_expired()) {
    return ApiError{.status = 408,
                    .message = in_head ? "the headers took too long" : "the body took too long",
                    .code = "timeout"};
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return ApiError{.status = 431, .message = "the headers are too large", .code = "headers_too_large"};
  }
  if (error == http::error::body_limit) {
    const size_t limit = connection.limits().body_bytes;
    return ApiError{.status = 413,
                    .message = fmt::format("expected a body of at most {} bytes", limit),
                    .code = "body_too_large"};
  }
  if (error.category() == make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message) {
    return ApiError{.message = "expected an HTTP/1.1 request, found: " + error.message(),
                    .code = "bad_request"};
  }
  return std::nullopt;
}

// Limits on what the parser took whole.
std::optional<ApiError> check_sizes(const HttpLimits& limits, const Parser& parser) {
  const auto& request = parser.get();
  if (request.target().size() > limits.target_bytes) {
    return ApiError{.status = 414,
                    .message = fmt::format("expected a path of at most {} bytes", limits.target_bytes),
                    .code = "uri_too_long"};
  }
  int count = 0;
  bool is_long = false;
  for (const auto& field : request) {
    ++count;
    is_long = is_long || field.name_string().size() + field.value().size() > limits.header_line_bytes;
  }
  if (is_long || count > limits.headers) {
    return ApiError{.status = 431,
                    .message = fmt::format("expected at most {} headers of at most {} bytes", limits.headers,
                                           limits.header_line_bytes),
                    .code = "headers_too_large"};
  }
  return std::nullopt;
}

RequestHeader read_head(const Parser& parser) {
  const auto& request = parser.get();
  RequestHeader head;
  head.method = text_of(request.method_string());
  head.target = text_of(request.target());
  head.is_http_1_1 = request.version() == 11;
  head.hosts = static_cast<int>(request.count(http::field::host));
  if (head.hosts > 0) head.host = text_of(request[http::field::host]);
  head.authorization = text_of(request[http::field::authorization]);
  head.content_type = text_of(request[http::field::content_type]);
  head.origin = text_of(request[http::field::origin]);
  const std::string id = text_of(request["X-Request-Id"]);
  if (is_request_id(id)) head.request_id = id;
  return head;
}

// The bytes of one body in the account of all.
class BodyAccount {
 public:
  explicit BodyAccount(Service* service) : service_(service) {}
  ~BodyAccount() { service_->bodies_bytes -= bytes_; }
  BodyAccount(const BodyAccount&) = delete;
  BodyAccount& operator=(const BodyAccount&) = delete;

  bool set(size_t bytes) {
    service_->bodies_bytes += bytes - bytes_;
    bytes_ = bytes;
    return service_->bodies_bytes <= service_->limits.bodies_bytes;
  }

 private:
  Service* service_;
  size_t bytes_ = 0;
};

Reply overloaded_reply() {
  return error_reply({.status = 503,
                      .type = "unavailable_error",
                      .message = "too many large requests at once",
                      .code = "overloaded",
                      .retry_after = 1});
}

// Reads the body. Nothing: the connection broke.
Connection::Task<std::optional<Reply>> read_body(Connection& connection, Parser& parser, bool& is_broken) {
  Service& service = connection.service();
  const HttpLimits& limits = service.limits;
  if (!parser.is_done() && parser.get()[http::field::expect] == "100-continue") {
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    const bool sent = co_await connection.write(kContinue);
    is_broken = !sent;
  }
  if (const auto length = parser.content_length(); length && *length > kDiscardedBody)
    connection.buffer().reserve(kDiscardedBody);
  BodyAccount account(&service);
  const auto end = Connection::Clock::now() + limits.body_time;
  Code error;
  while (!parser.is_done() && !is_broken) {
    const auto left = std::chrono::duration_cast<Connection::Duration>(end - Connection::Clock::now());
    connection.set_deadline(std::min(limits.body_gap, left));
    co_await http::async_read_some(connection.socket(), connection.buffer(), parser,
                                   asio::redirect_error(asio::use_awaitable, error));
    if (error) {
      if (connection.is_expired()) service.metrics.on_drop(DropReason::kSlowBody);
      const std::optional<ApiError> told = read_error(connection, error, false);
      if (told) co_return error_reply(*told);
      is_broken = true;
      break;
    }
    if (!account.set(parser.get().body().size())) {
      co_return overloaded_reply();
    }
  }
  connection.set_no_deadline();
  if (connection.buffer().size() == 0) connection.buffer().shrink_to_fit();
  co_return std::nullopt;
}

// Whether the rest of a refused request is small enough to be read over, so that the connection can go on.
Connection::Task<bool> skip_body(Connection& connection, Parser& parser) {
  if (parser.is_done()) co_return true;
  const auto length = parser.content_length();
  if (!length || *length > kDiscardedBody || !parser.get()[http::field::expect].empty()) co_return false;
  bool is_broken = false;
  const std::optional<Reply> failed = co_await read_body(connection, parser, is_broken);
  co_return !failed && !is_broken;
}

// A preflight of an allowed origin.
std::optional<Reply> preflight(const Service& service, const RequestHeader& head) {
  if (head.method != "OPTIONS" || allowed_origin(service.options, head.origin).empty()) return std::nullopt;
  Reply reply{.status = 204, .content_type = ""};
  reply.headers = {{"Access-Control-Allow-Methods", "GET, POST"},
                   {"Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id"},
                   {"Access-Control-Max-Age", "600"}};
  return reply;
}

Reply refusal_reply(const Exchange& exchange, const Refusal& refusal) {
  Reply reply = error_reply(refusal.error);
  if (!refusal.allow.empty()) reply.headers.emplace_back("Allow", refusal.allow);
  if (refusal.error.status != 401) return reply;
  // So that a browser asks, and sends what it was told with the page's own requests.
  const auto path = request_path(exchange.head.target);
  reply.headers.emplace_back(
      "WWW-Authenticate", path == "/" ? "Basic realm=\"outrider: any name, a key as password\"" : "Bearer");
  return reply;
}

// The queue may have filled while the body came.
bool lost_its_place(const Service& service, const RouteRow& row) {
  return row.method == "POST" && row.route != Route::kCancel && service.calls.is_full();
}

Connection::Task<bool> dispatch(Exchange& exchange) {
  const Service& service = exchange.connection->service();
  if (lost_its_place(service, *exchange.admission.match.row)) {
    const Reply refused = error_reply(queue_full_error(service));
    co_return co_await send(exchange, refused);
  }
  switch (exchange.admission.match.row->route) {
    case Route::kChatCompletions:
    case Route::kCompletions:
      co_return co_await answer_generation(exchange);
    case Route::kTokenize:
    case Route::kDetokenize:
    case Route::kApplyTemplate:
      co_return co_await answer_prepared(exchange);
    default:
      break;
  }
  const Reply reply =
      answer(exchange.connection->service(), exchange.admission.match, exchange.admission.scope);
  co_return co_await send(exchange, reply);
}

void set_ids(Exchange& exchange) {
  exchange.id = random_id();
  exchange.client_id = exchange.head.request_id.empty() ? exchange.id : exchange.head.request_id;
}

// An answer to what could not be read as a request; the connection ends.
Connection::Task<bool> send_last(Exchange& exchange, const ApiError& error) {
  set_ids(exchange);
  exchange.keeps_alive = false;
  const Reply reply = error_reply(error);
  co_await send(exchange, reply);
  co_return false;
}

}  // namespace

Connection::Task<bool> exchange_one(Connection& connection) {
  Service& service = connection.service();
  Parser parser;
  parser.header_limit(static_cast<uint32_t>(service.limits.header_bytes));
  parser.body_limit(service.limits.body_bytes);
  connection.set_deadline(service.limits.header_time);
  Code error;
  co_await http::async_read_header(connection.socket(), connection.buffer(), parser,
                                   asio::redirect_error(asio::use_awaitable, error));
  connection.set_no_deadline();
  Exchange exchange{.connection = &connection};
  exchange.arrived_ms = now_ms();
  if (error) {
    if (connection.is_expired()) service.metrics.on_drop(DropReason::kSlowHeader);
    const std::optional<ApiError> told = read_error(connection, error, true);
    if (told) co_await send_last(exchange, *told);
    co_return false;
  }
  exchange.head = read_head(parser);
  set_ids(exchange);
  exchange.keeps_alive = parser.keep_alive();
  exchange.is_chunked = exchange.head.is_http_1_1;
  if (const auto oversized = check_sizes(service.limits, parser))
    co_return co_await send_last(exchange, *oversized);
  if (const std::optional<Reply> allowed = preflight(service, exchange.head)) {
    exchange.keeps_alive = exchange.keeps_alive && parser.is_done();
    const bool sent = co_await send(exchange, *allowed);
    co_return sent&& exchange.keeps_alive;
  }
  auto admitted = admit(service, exchange.head);
  if (!admitted.ok()) {
    // The answer goes first: a refusal costs little time, whatever is on its way.
    const auto length = parser.content_length();
    const bool is_short = parser.is_done() || (length && *length <= kDiscardedBody);
    exchange.keeps_alive = exchange.keeps_alive && is_short;
    const Reply reply = refusal_reply(exchange, admitted.error());
    const bool sent = co_await send(exchange, reply);
    if (!sent || !exchange.keeps_alive) co_return false;
    co_return co_await skip_body(connection, parser);
  }
  exchange.admission = std::move(admitted).value();
  bool is_broken = false;
  const std::optional<Reply> failed = co_await read_body(connection, parser, is_broken);
  if (is_broken) co_return false;
  if (failed) {
    exchange.keeps_alive = false;
    co_await send(exchange, *failed);
    co_return false;
  }
  exchange.body = std::move(parser.get().body());
  const bool sent = co_await dispatch(exchange);
  co_return sent&& exchange.keeps_alive && !service.is_closing;
}

std::string head_text(const Exchange& exchange, const Reply& reply, int64_t length) {
  const auto status = static_cast<http::status>(reply.status);
  const boost::beast::string_view reason = http::obsolete_reason(status);
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nX-Request-Id: {}\r\n", reply.status,
                                 std::string_view(reason.data(), reason.size()), exchange.client_id);
  const auto append = [&text](std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(text), "{}: {}\r\n", name, value);
  };
  append("Connection", exchange.keeps_alive ? "keep-alive" : "close");
  if (!reply.content_type.empty()) append("Content-Type", reply.content_type);
  if (length >= 0 && reply.status != 204) {
    append("Content-Length", std::to_string(length));
  } else if (length < 0 && exchange.is_chunked) {
    append("Transfer-Encoding", "chunked");
  }
  append("Cache-Control", "no-store");
  append("X-Content-Type-Options", "nosniff");
  const std::string origin = allowed_origin(exchange.connection->service().options, exchange.head.origin);
  if (!origin.empty()) {
    append("Access-Control-Allow-Origin", origin);
    append("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
    append("Vary", "Origin");
  }
  for (const auto& [name, value] : reply.headers) append(name, value);
  return text + "\r\n";
}

Connection::Task<bool> send_unlogged(Exchange& exchange, const Reply& reply) {
  Service& service = exchange.connection->service();
  exchange.keeps_alive = exchange.keeps_alive && !service.is_closing;
  service.metrics.on_response(reply.status);
  const std::string text = head_text(exchange, reply, static_cast<int64_t>(reply.body.size())) + reply.body;
  co_return co_await exchange.connection->write(text);
}

Connection::Task<bool> send(Exchange& exchange, const Reply& reply) {
  const auto* row = exchange.admission.match.row;
  log_request({.id = exchange.client_id,
               .method = row == nullptr ? "" : std::string(row->method),
               .route = row == nullptr ? "" : std::string(row->pattern),
               .status = reply.status,
               .total_ms = now_ms() - exchange.arrived_ms,
               .error = reply.error,
               .call = std::nullopt});
  co_return co_await send_unlogged(exchange, reply);
}

}  // namespace outrider
