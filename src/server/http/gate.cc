// SPDX-License-Identifier: Apache-2.0
#include "server/http/gate.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/quote.h"

namespace outrider {
namespace {

Refusal refusal(ApiError error) { return {.error = std::move(error), .allow = {}}; }

std::optional<Refusal> check_host_count(const RequestHeader& header) {
  if (header.hosts == 1 || (header.hosts == 0 && !header.is_http_1_1)) return std::nullopt;
  return refusal({.message = "expected one Host header, found " + std::to_string(header.hosts)});
}

std::optional<Refusal> check_host(const Service& service, const RequestHeader& header) {
  if (!header.host || service.hosts.allow(*header.host)) return std::nullopt;
  return refusal({.status = 403,
                  .type = "permission_error",
                  .message = "this name is not served; --allowed-host adds one",
                  .code = "host_not_allowed"});
}

std::optional<Refusal> check_phase(const Service& service, const RouteRow& row) {
  if (!row.needs_model) return std::nullopt;
  if (service.phase == Phase::kLoading) {
    return refusal({.status = 503,
                    .type = "unavailable_error",
                    .message = "the model is loading",
                    .code = "loading",
                    .retry_after = 2});
  }
  if (service.phase == Phase::kDraining && row.method == "POST") {
    return refusal({.status = 503,
                    .type = "unavailable_error",
                    .message = "the server is shutting down",
                    .code = "draining",
                    .retry_after = 5});
  }
  return std::nullopt;
}

// Why a key may not begin a request now, by its quotas; otherwise the request is counted.
std::optional<ApiError> key_debt(const Service& service, uint64_t scope) {
  if (service.quotas == nullptr) return std::nullopt;
  const std::optional<double> seconds = service.quotas->refuse(scope, now_ms());
  if (!seconds) return std::nullopt;
  return ApiError{.status = 429,
                  .type = "rate_limit_error",
                  .message = "this key has had the requests or tokens that the server allows it in a minute",
                  .code = "rate_limit_exceeded",
                  .retry_after = static_cast<int>(std::ceil(*seconds))};
}

}  // namespace

std::optional<Refusal> admit(const Service& service, const RequestHeader& header, Admission& admission) {
  const std::optional<std::string> path = served_path(service.options, header.target);
  if (!path) return refusal({.message = "expected a path such as /v1/models, found another request target"});
  if (auto refused = check_host_count(header)) return refused;
  RouteMatch& match = admission.match;
  match = match_route(header.method, *path);
  // Health probes know neither host names nor keys.
  const bool is_public = match.row != nullptr && match.row->is_public;
  if (!is_public) {
    if (auto refused = check_host(service, header)) return refused;
    if (const auto scope = service.fleet_key.scope_in(header.of_fleet)) {
      admission.scope = *scope;
      admission.is_background = true;
    } else if (service.keys.required()) {
      const std::string key =
          header.authorization.empty() ? header.api_key : credential(header.authorization);
      const std::optional<uint64_t> found = service.keys.scope_of(key);
      if (!found) {
        return refusal({.status = 401,
                        .type = "authentication_error",
                        .message = "expected a known key in Authorization: Bearer KEY or x-api-key: KEY",
                        .code = "invalid_api_key"});
      }
      admission.scope = *found;
      admission.key_name = service.keys.name_of(key);
    }
  }
  if (!service.options.has_chat_page && path == "/") match = {};
  if (match.row == nullptr) {
    if (match.allowed.empty()) {
      return refusal(
          {.status = 404, .type = "not_found_error", .message = "no such path", .code = "not_found"});
    }
    ApiError error{
        .status = 405, .message = "this path takes " + match.allowed, .code = "method_not_allowed"};
    return Refusal{.error = std::move(error), .allow = match.allowed};
  }
  if (match.row->is_of_batches() && service.batches == nullptr) {
    return refusal(not_served_error("this server has no Batch API; --batch-folder gives it one"));
  }
  if (match.row->method == "POST" && !match.row->takes_files && !is_json_type(header.content_type)) {
    return refusal({.status = 415,
                    .message = "expected the header Content-Type: application/json (curl: -H), found " +
                               (header.content_type.empty() ? "none" : quote(header.content_type)),
                    .code = "unsupported_media_type"});
  }
  const std::string& encoding = header.content_encoding;
  if (!encoding.empty() && encoding != "identity" && encoding != "gzip") {
    return refusal(
        {.status = 415,
         .message = "expected a body in gzip or without Content-Encoding, found " + quote(encoding),
         .code = "unsupported_content_encoding"});
  }
  if (auto refused = check_phase(service, *match.row)) return refused;
  if (admission.is_background) return std::nullopt;
  if (match.row->is_queued() && service.calls.is_full()) return refusal(queue_full_error(service));
  if (std::holds_alternative<ParseFunction>(match.row->function)) {
    if (auto crowd = key_crowd(service, admission.scope, 1)) return refusal(*std::move(crowd));
    if (auto debt = key_debt(service, admission.scope)) return refusal(*std::move(debt));
  }
  return std::nullopt;
}

std::optional<std::string> served_path(const ServerOptions& options, std::string_view target) {
  std::optional<std::string> path = request_path(target);
  const std::string& root = options.root_path;
  if (path && !root.empty() && path->starts_with(root + "/")) path->erase(0, root.size());
  return path;
}

std::optional<ApiError> key_crowd(const Service& service, uint64_t scope, int sequences) {
  const int limit = service.options.max_running_per_key;
  const int load = service.calls.load_of(scope) + (service.fleet ? service.fleet->running_of(scope) : 0);
  if (limit == 0 || load + sequences <= limit) return std::nullopt;
  return ApiError{.status = 429,
                  .type = "rate_limit_error",
                  .message = "this key has " + std::to_string(load) +
                             " requests in progress, and the server allows " + std::to_string(limit) +
                             " of one key",
                  .code = "key_busy",
                  .retry_after = service.calls.retry_after()};
}

ApiLimits api_limits(const Service& service) {
  return {.sequences = service.calls.limit(),
          .default_tokens = service.options.default_max_tokens,
          .output_tokens = service.options.max_tokens_limit};
}

ApiError queue_full_error(const Service& service) {
  return {.status = 429,
          .type = "rate_limit_error",
          .message = "the queue is full",
          .code = "queue_full",
          .retry_after = service.calls.retry_after()};
}

std::string allowed_headers(const RequestHeader& header) {
  const std::string& asked = header.preflight_headers;
  const bool is_valid = !asked.empty() && std::all_of(asked.begin(), asked.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == ',' || c == ' ';
  });
  return is_valid ? asked : "Authorization, Content-Type, X-Request-Id";
}

std::string allowed_origin(const ServerOptions& options, std::string_view origin) {
  const auto& origins = options.cors_origins;
  if (origin.empty()) return {};
  if (std::find(origins.begin(), origins.end(), origin) != origins.end()) return std::string(origin);
  return std::find(origins.begin(), origins.end(), "*") != origins.end() ? "*" : "";
}

}  // namespace outrider
