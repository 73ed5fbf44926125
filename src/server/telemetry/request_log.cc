// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/request_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <iterator>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "server/api/json_writer.h"

namespace outrider {
namespace {

constexpr size_t kMaxText = 300;  // bytes

std::string utc_time() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, ms);
}

double thousandths(double ms) { return std::round(ms * 1000) / 1000; }

void append_unit(std::string& out, uint32_t unit) {
  fmt::format_to(std::back_inserter(out), "\\u{:04x}", unit);
}

// Valid UTF-8 with all but ASCII escaped as in JSON, because terminals obey some other characters.
std::string in_ascii(std::string_view json) {
  std::string out;
  while (!json.empty()) {
    const auto [value, length] = utf8::decode(json);
    if (value < 0x80) {
      out += json.front();
    } else if (value < 0x10000) {
      append_unit(out, value);
    } else {
      append_unit(out, 0xd800 + ((value - 0x10000) >> 10));
      append_unit(out, 0xdc00 + ((value - 0x10000) & 0x3ff));
    }
    json.remove_prefix(static_cast<size_t>(length));
  }
  return out;
}

// A line with one JSON object.
class LogLine {
 public:
  explicit LogLine(std::string_view event) {
    writer_.begin_object().member("time", utc_time()).member("event", event);
  }
  JsonWriter& writer() { return writer_; }
  // A single write keeps the lines of several threads apart.
  void write() {
    writer_.end_object();
    const std::string line = in_ascii(text_) + "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  }

 private:
  std::string text_;
  JsonWriter writer_{text_};
};

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
  LogLine line("request");
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
  line.write();
}

void log_event(std::string_view event, std::string_view detail) {
  LogLine line(event);
  line.writer().member("detail", detail.substr(0, kMaxText));
  line.write();
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
