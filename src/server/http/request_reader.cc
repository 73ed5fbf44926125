// SPDX-License-Identifier: Apache-2.0
#include "server/http/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/error.hpp>
#include <stdexcept>

namespace outrider {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

using Code = boost::system::error_code;

constexpr size_t kDiscardedBody = 64 << 10;  // bytes, of a refused request that may keep its connection
constexpr size_t kLeastRead = 2048, kMostRead = 32 << 10;  // bytes of one read

std::string text_of(boost::beast::string_view view) { return {view.data(), view.size()}; }

ApiError too_long_error(size_t limit) {
  return {.status = 413,
          .message = fmt::format("expected a body of at most {} bytes", limit),
          .code = "body_too_large"};
}

ApiError overloaded_error() {
  return {.status = 503,
          .type = "unavailable_error",
          .message = "too many large requests at once",
          .code = "overloaded",
          .retry_after = 1};
}

}  // namespace

RequestReader::RequestReader(Connection* connection) : connection_(connection) {
  const HttpLimits& limits = connection->limits();
  parser_.header_limit(static_cast<uint32_t>(limits.header_bytes));
  parser_.body_limit(std::max(limits.body_bytes, limits.upload_bytes));
  on_chunk_ = [this, limit = limits.header_line_bytes](uint64_t, boost::beast::string_view extension,
                                                       Code& error) {
    extension_bytes_ += extension.size();
    if (extension_bytes_ > limit) error = http::error::header_limit;
  };
  parser_.on_chunk_header(on_chunk_);
}

// Parses what was received, or receives more where that is not enough.
Connection::Task<RequestReader::Code> RequestReader::advance() {
  Code error = http::error::need_more;
  if (connection_->buffer().size() > 0) error = parse();
  if (error == http::error::need_more) error = co_await receive();
  co_return error;
}

RequestReader::Code RequestReader::parse() {
  auto& buffer = connection_->buffer();
  Code error;
  try {
    buffer.consume(parser_.put(buffer.data(), error));
  } catch (const std::length_error&) {  // Beast keeps no field beyond 64 KiB
    error = http::error::header_limit;
  }
  return error;
}

// The parser takes the line of a chunk only as a whole, and the last one only with the trailer.
bool RequestReader::is_framing_too_long() const {
  const HttpLimits& limits = connection_->limits();
  const auto bytes = connection_->buffer().data();
  const std::string_view pending(static_cast<const char*>(bytes.data()), bytes.size());
  const size_t line_end = pending.find('\n', 2);  // after the end of the chunk before
  return pending.size() > limits.header_bytes ||
         std::min(line_end, pending.size()) > limits.header_line_bytes;
}

Connection::Task<RequestReader::Code> RequestReader::receive() {
  auto& buffer = connection_->buffer();
  if (parser_.is_header_done() && is_framing_too_long()) co_return http::error::header_limit;
  Code error;
  const auto space = buffer.prepare(std::clamp(buffer.capacity() - buffer.size(), kLeastRead, kMostRead));
  const size_t count =
      co_await connection_->stream().async_read_some(space, asio::redirect_error(asio::use_awaitable, error));
  buffer.commit(count);
  if (error == asio::error::eof) error = http::error::partial_message;
  co_return error;
}

// nullopt: the client only closed the connection.
std::optional<ApiError> RequestReader::error_of(const Code& error, bool in_header) const {
  if (connection_->is_expired()) {
    return ApiError{.status = 408,
                    .message = in_header ? "the headers took too long" : "the body took too long",
                    .code = "timeout"};
  }
  if (error == http::error::header_limit) {
    return ApiError{.status = 431,
                    .message = in_header ? "the headers are too large"
                                         : "the trailer or the extensions of the chunks are too large",
                    .code = "headers_too_large"};
  }
  if (error == http::error::body_limit) {
    const HttpLimits& limits = connection_->limits();
    return too_long_error(std::max(limits.body_bytes, limits.upload_bytes));
  }
  if (error.category() == make_error_code(http::error::bad_method).category() &&
      error != http::error::partial_message) {
    return ApiError{.message = "expected an HTTP/1.1 request, found: " + error.message(),
                    .code = "bad_request"};
  }
  return std::nullopt;
}

Connection::Task<bool> RequestReader::read_header() {
  connection_->set_deadline(connection_->limits().header_time);
  Code error;
  while (!error && !parser_.is_header_done()) error = co_await advance();
  connection_->set_no_deadline();
  if (!error) co_return true;
  if (connection_->is_expired()) connection_->service().metrics.on_drop(DropReason::kSlowHeader);
  failure_ = error_of(error, true);
  co_return false;
}

RequestHeader RequestReader::header() const {
  const auto& request = parser_.get();
  RequestHeader header;
  header.method = text_of(request.method_string());
  header.target = text_of(request.target());
  header.is_http_1_1 = request.version() == 11;
  header.hosts = static_cast<int>(request.count(http::field::host));
  if (header.hosts > 0) header.host = text_of(request[http::field::host]);
  header.authorization = text_of(request[http::field::authorization]);
  header.api_key = text_of(request["x-api-key"]);
  header.of_fleet = text_of(request[std::string(FleetKey::kHeader)]);
  header.content_type = text_of(request[http::field::content_type]);
  header.content_encoding = lowered(text_of(request[http::field::content_encoding]));
  header.origin = text_of(request[http::field::origin]);
  header.preflight_headers = text_of(request[http::field::access_control_request_headers]);
  const std::string id = text_of(request["X-Request-Id"]);
  if (is_request_id(id)) header.request_id = id;
  // Whoever reaches a UNIX socket is trusted to tell the client; others could write anything.
  if (connection_->address() == kUnixAddress)
    header.forwarded_for = client_address(text_of(request["X-Forwarded-For"]));
  if (request.count("traceparent") == 1) header.trace = parse_traceparent(text_of(request["traceparent"]));
  return header;
}

std::optional<ApiError> RequestReader::check_sizes() const {
  const HttpLimits& limits = connection_->limits();
  const auto& request = parser_.get();
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

bool RequestReader::is_short() const {
  const auto length = parser_.content_length();
  return parser_.is_done() || (length && *length <= kDiscardedBody);
}

bool RequestReader::is_too_long(size_t limit) {
  if (std::max<uint64_t>(parser_.content_length().value_or(0), parser_.get().body().size()) <= limit)
    return false;
  failure_ = too_long_error(limit);
  return true;
}

Connection::Task<bool> RequestReader::read_body(size_t limit) {
  Service& service = connection_->service();
  const HttpLimits& limits = service.limits;
  if (is_too_long(limit)) co_return false;
  if (!parser_.is_done() && parser_.get()[http::field::expect] == "100-continue") {
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    const bool is_sent = co_await connection_->write(kContinue);
    if (!is_sent) co_return false;
  }
  if (const auto length = parser_.content_length(); length && *length > kDiscardedBody)
    connection_->buffer().reserve(kDiscardedBody);
  account_ = std::make_shared<BodyAccount>(&service.bodies_bytes, limits.bodies_bytes);
  const auto end = Connection::Clock::now() + limits.body_time;
  Code error;
  while (!parser_.is_done()) {
    const auto left = std::chrono::duration_cast<Connection::Duration>(end - Connection::Clock::now());
    connection_->set_deadline(std::min(limits.body_gap, left));
    error = co_await advance();
    if (error) {
      if (connection_->is_expired()) service.metrics.on_drop(DropReason::kSlowBody);
      failure_ = error_of(error, false);
      co_return false;
    }
    if (is_too_long(limit)) co_return false;
    if (!account_->set(parser_.get().body().size())) {
      failure_ = overloaded_error();
      co_return false;
    }
  }
  connection_->set_no_deadline();
  if (connection_->buffer().size() == 0) connection_->buffer().shrink_to_fit();
  failure_ = check_sizes();  // the trailer has joined the headers
  co_return !failure_;
}

Connection::Task<bool> RequestReader::skip_body() {
  if (parser_.is_done()) co_return true;
  if (!is_short() || !parser_.get()[http::field::expect].empty()) co_return false;
  co_return co_await read_body(kDiscardedBody);
}

}  // namespace outrider
