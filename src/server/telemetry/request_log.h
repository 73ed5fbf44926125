// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/telemetry/trace_context.h"

namespace outrider {

// Counts and times of one call, over all its choices, for log and metrics.
struct CallTotals {
  int choices = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t output_tokens = 0;
  std::optional<double> first_token_ms;  // since the request arrived
  double queue_ms = 0;                   // maximum over the choices
  double prompt_ms = 0;
  double decode_ms = 0;
  int64_t steps = 0;
  int64_t drafted = 0;
  int64_t accepted = 0;
  std::string finish_reason;  // of the choice that finished last
  std::vector<std::string> ignored_fields;
};

// The sender of a request, for its line.
struct RequestClient {
  std::string address = {};  // of the other end of the connection, which may be a proxy
  std::string key = {};      // the name of its key; empty: none
  std::optional<TraceContext> trace = {};
};

struct RequestRecord {
  std::string id = {};
  std::string method = {};
  std::string route = {};  // pattern of the route table, never the text that the client sent
  int status = 0;
  double total_ms = 0;
  std::string error = {};  // error code or message of the answer
  RequestClient client = {};
  std::string model = {};            // the served name, of requests that the model answers; empty: others
  std::optional<bool> streams = {};  // unset: the body was not read, or says nothing about it
  std::optional<CallTotals> call = {};
};

// Both write one line with a JSON object to standard error. It never holds prompts, answers or keys.
void log_request(const RequestRecord& record);
void log_event(std::string_view event, std::string_view detail);
// The message of an exception, as an event. Never throws: without memory for the line there is none.
void log_failure(std::string_view event, const std::exception_ptr& exception) noexcept;

}  // namespace outrider
