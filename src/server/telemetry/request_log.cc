// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/request_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

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

double rounded(double ms) { return std::round(ms * 1000) / 1000; }

// JSON escapes control characters. A single write keeps the lines of several threads apart.
void write_line(const Json& object) {
  const std::string line = object.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

void add_call(Json& line, const CallTotals& call) {
  line["choices"] = call.choices;
  line["prompt_tokens"] = call.prompt_tokens;
  line["cached_tokens"] = call.cached_tokens;
  line["output_tokens"] = call.output_tokens;
  line["queue_ms"] = rounded(call.queue_ms);
  line["prompt_ms"] = rounded(call.prompt_ms);
  line["decode_ms"] = rounded(call.decode_ms);
  if (call.first_token_ms) line["first_token_ms"] = rounded(*call.first_token_ms);
  line["drafted"] = call.drafted;
  line["accepted"] = call.accepted;
  if (call.drafted > 0) {
    line["acceptance_rate"] = rounded(static_cast<double>(call.accepted) / static_cast<double>(call.drafted));
  }
  if (!call.finish_reason.empty()) line["finish_reason"] = call.finish_reason;
  if (!call.ignored_fields.empty()) line["ignored_fields"] = call.ignored_fields;
}

}  // namespace

void log_request(const RequestRecord& record) {
  Json line = {{"time", utc_time()},
               {"event", "request"},
               {"id", record.id},
               {"method", record.method},
               {"route", record.route},
               {"status", record.status},
               {"total_ms", rounded(record.total_ms)}};
  if (!record.error.empty()) line["error"] = record.error.substr(0, kMaxText);
  if (record.call) add_call(line, *record.call);
  write_line(line);
}

void log_event(std::string_view event, std::string_view detail) {
  write_line({{"time", utc_time()}, {"event", event}, {"detail", detail.substr(0, kMaxText)}});
}

}  // namespace outrider
