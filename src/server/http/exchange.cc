// SPDX-License-Identifier: Apache-2.0
#include "server/http/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <iterator>
#include <optional>
#include <variant>

#include "base/clock.h"
#include "server/api/request_field.h"
#include "server/http/router.h"

namespace outrider {

namespace http = boost::beast::http;

Reply error_reply(const Exchange& exchange, const ApiError& error) {
  const auto path = served_path(exchange.connection->service().options, exchange.header.target);
  const bool is_messages = path && (path->starts_with("/v1/messages") || path->starts_with("/messages"));
  const bool is_ollama = path && path->starts_with("/api/");
  return error_reply(error, is_messages ? ErrorForm::kAnthropic
                            : is_ollama ? ErrorForm::kOllama
                                        : ErrorForm::kOpenAi);
}

std::string header_text(const Exchange& exchange, const Reply& reply, int64_t length) {
  const auto status = static_cast<http::status>(reply.status);
  const boost::beast::string_view reason = http::obsolete_reason(status);
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nX-Request-Id: {}\r\n", reply.status,
                                 std::string_view(reason.data(), reason.size()), exchange.client_id);
  const auto append = [&text](std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(text), "{}: {}\r\n", name, value);
  };
  if (exchange.header.trace) append("Traceparent", exchange.header.trace->header());
  append("Connection", exchange.keeps_alive ? "keep-alive" : "close");
  if (!reply.content_type.empty()) append("Content-Type", reply.content_type);
  if (length >= 0 && reply.status != 204) {
    append("Content-Length", std::to_string(length));
  } else if (length < 0 && exchange.is_chunked) {
    append("Transfer-Encoding", "chunked");
  }
  append("Cache-Control", "no-store");
  append("X-Content-Type-Options", "nosniff");
  const std::string origin = allowed_origin(exchange.connection->service().options, exchange.header.origin);
  if (!origin.empty()) {
    append("Access-Control-Allow-Origin", origin);
    append("Access-Control-Expose-Headers", "X-Request-Id, Retry-After, Traceparent");
    append("Vary", "Origin");
  }
  for (const auto& [name, value] : reply.headers) append(name, value);
  return text + "\r\n";
}

namespace {

// A new file or batch gets its id with the answer.
std::string subject_of(const Exchange& exchange, const Reply& reply) {
  constexpr int kMostDepth = 8;  // of the JSON of an answer
  if (!exchange.subject.empty() || reply.status != 200) return exchange.subject;
  const ApiResult<RequestBody> body = RequestBody::parse(reply.body, kMostDepth);
  const std::optional<RequestField> id = body.ok() ? body->root().find("id") : std::nullopt;
  const ApiResult<std::string> text = id ? id->string() : ApiResult<std::string>(std::string());
  return text.ok() ? *text : "";
}

// A slot's action is in the query.
std::string action_of(const RouteRow& row, std::string_view target) {
  const std::string action = query_value(target, "action");
  const bool is_of_slot = std::holds_alternative<SlotAction>(row.function);
  const bool is_known = action == "save" || action == "restore" || action == "erase";
  return std::string(row.action) + (is_of_slot && is_known ? "_" + action : "");
}

}  // namespace

void audit_reply(const Exchange& exchange, const Reply& reply) {
  AuditLog* const audit = exchange.connection->service().audit.get();
  const RouteRow* row = exchange.admission.match.row;
  const bool is_audited = row != nullptr && !row->action.empty();
  const bool is_refused =
      is_refusal(reply.status) && reply.error != "queue_full";  // which no key is to blame for
  if (audit == nullptr || !(is_audited || is_refused)) return;
  [[maybe_unused]] const Status written =  // the log of the server tells of lost lines
      audit->add({.action = is_audited ? action_of(*row, exchange.header.target) : "request",
                  .subject = is_audited ? subject_of(exchange, reply) : "",
                  .error = reply.error,
                  .status = reply.status,
                  .id = exchange.client_id,
                  .method = row == nullptr ? "" : std::string(row->method),
                  .route = row == nullptr ? "" : std::string(row->pattern),
                  .client = client_of(exchange)});
}

Connection::Task<bool> send_unlogged(Exchange& exchange, const Reply& reply) {
  Service& service = exchange.connection->service();
  exchange.keeps_alive = exchange.keeps_alive && !service.is_closing;
  service.metrics.on_response(reply.status);
  audit_reply(exchange, reply);
  std::string text = header_text(exchange, reply, static_cast<int64_t>(reply.body.size()));
  if (exchange.header.method != "HEAD") text += reply.body;
  exchange.is_answered = true;
  co_return co_await exchange.connection->write(text);
}

RequestClient client_of(const Exchange& exchange) {
  const std::string& forwarded = exchange.header.forwarded_for;
  return {.address = forwarded.empty() ? exchange.connection->address() : forwarded,
          .key = exchange.admission.key_name,
          .trace = exchange.header.trace};
}

bool is_logged(const Exchange& exchange) {
  const RouteRow* row = exchange.admission.match.row;
  const auto& routes = exchange.connection->service().options.no_log_routes;
  return row == nullptr ||
         std::ranges::none_of(routes, [row](const std::string& name) { return is_route(*row, name); });
}

void log_reply(const Exchange& exchange, const Reply& reply) {
  if (!is_logged(exchange)) return;
  const RouteRow* row = exchange.admission.match.row;
  const Service& service = exchange.connection->service();
  const bool is_queued = row != nullptr && row->is_queued();
  const RequestRecord record{.id = exchange.client_id,
                             .method = row == nullptr ? "" : std::string(row->method),
                             .route = row == nullptr ? "" : std::string(row->pattern),
                             .status = reply.status,
                             .total_ms = now_ms() - exchange.arrived_ms,
                             .error = reply.error,
                             .client = client_of(exchange),
                             .model = is_queued ? service.model.name : "",
                             .streams = std::nullopt,
                             .call = std::nullopt};
  log_request(record);
  if (service.traces != nullptr && is_queued) service.traces->add(record);
}

Connection::Task<bool> send(Exchange& exchange, const Reply& reply) {
  log_reply(exchange, reply);
  co_return co_await send_unlogged(exchange, reply);
}

}  // namespace outrider
