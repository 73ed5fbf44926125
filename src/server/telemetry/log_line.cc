// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/log_line.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <iterator>

#include "base/utf8.h"

namespace outrider {
namespace {

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

}  // namespace

LogLine::LogLine(std::string_view member, std::string_view what) {
  writer_.begin_object().member("time", utc_time()).member(member, what);
}

std::string LogLine::take() {
  writer_.end_object();
  return in_ascii(text_) + "\n";
}

}  // namespace outrider
