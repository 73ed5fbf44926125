// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/request_log.h"

#include <unistd.h>

#include <cmath>
#include <string>
#include <string_view>

#include "server/telemetry/log_line.h"

namespace outrider {
namespace {

constexpr size_t kMaxText = 300;  // bytes

double thousandths(double ms) { return std::round(ms * 1000) / 1000; }

// A single write keeps the lines of several threads apart.
void write_to_log(LogLine& line) {
  const std::string text = line.take();
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

void add_client(JsonWriter& line, const RequestClient& client) {
  if (!client.address.empty()) line.member("client", client.address);
  if (!client.key.empty()) line.member("key", client.key);
  if (!client.trace) return;
  line.member("trace_id", client.trace->trace_id);
  if (!client.trace->parent_id.empty()) line.member("parent_id", client.trace->parent_id);
  line.member("span_id", client.trace->span_id);
}

void add_call(JsonWriter& line, const CallTotals& call) {
  line.member("choices", call.choices)
      .member("prompt_tokens", call.prompt_tokens)
      .member("cached_tokens", call.cached_tokens)
      .member("output_tokens", call.output_tokens)
      .member("queue_ms", thousandths(call.queue_ms))
      .member("prompt_ms", thousandths(call.prompt_ms))
      .member("decode_ms", thousandths(call.decode_ms));
  if (call.first_token_ms) line.member("first_token_ms", thousandths(*call.first_token_ms));
  line.member("drafted", call.drafted).member("accepted", call.accepted);
  if (call.drafted > 0) {
    const double rate = static_cast<double>(call.accepted) / static_cast<double>(call.drafted);
    line.member("acceptance_rate", thousandths(rate));
  }
  if (!call.finish_reason.empty()) line.member("finish_reason", call.finish_reason);
  if (!call.ignored_fields.empty()) line.member("ignored_fields", call.ignored_fields);
}

}  // namespace

void log_request(const RequestRecord& record) {
  LogLine line("event", "request");
  line.writer()
      .member("id", record.id)
      .member("method", record.method)
      .member("route", record.route)
      .member("status", record.status)
      .member("total_ms", thousandths(record.total_ms));
  add_client(line.writer(), record.client);
  if (!record.model.empty()) line.writer().member("model", record.model);
  if (record.streams) line.writer().member("stream", *record.streams);
  if (!record.error.empty()) line.writer().member("error", record.error.substr(0, kMaxText));
  if (record.call) add_call(line.writer(), *record.call);
  write_to_log(line);
}

void log_event(std::string_view event, std::string_view detail) {
  LogLine line("event", event);
  line.writer().member("detail", detail.substr(0, kMaxText));
  write_to_log(line);
}

void log_failure(std::string_view event, const std::exception_ptr& exception) noexcept {
  try {
    try {
      std::rethrow_exception(exception);
    } catch (const std::exception& error) {
      log_event(event, error.what());
    } catch (...) {
      log_event(event, "an unknown exception");
    }
  } catch (...) {  // NOLINT: there is nobody left to tell
  }
}

}  // namespace outrider
