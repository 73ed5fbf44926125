// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/trace_context.h"

#include <fmt/format.h>

#include <algorithm>

namespace outrider {
namespace {

constexpr size_t kLength = 55;  // of version 00: 2 + 32 + 16 + 2 digits and three dashes

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) {
  return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

bool is_set(char last_digit) {
  const int digit = last_digit <= '9' ? last_digit - '0' : last_digit - 'a' + 10;
  return digit % 2 == 1;
}

}  // namespace

std::string TraceContext::header() const {
  return fmt::format("00-{}-{}-{}", trace_id, span_id, is_sampled ? "01" : "00");
}

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  if (text.size() < kLength) return std::nullopt;
  const std::string_view version = text.substr(0, 2), trace = text.substr(3, 32),
                         parent = text.substr(36, 16), flags = text.substr(53, 2);
  const bool has_dashes = text[2] == '-' && text[35] == '-' && text[52] == '-';
  const bool ends_well = text.size() == kLength || (version != "00" && text[kLength] == '-');
  if (!has_dashes || !ends_well || !is_hex(version) || version == "ff") return std::nullopt;
  if (!is_id(trace) || !is_id(parent) || !is_hex(flags)) return std::nullopt;
  return TraceContext{
      .trace_id = std::string(trace), .parent_id = std::string(parent), .is_sampled = is_set(flags.back())};
}

}  // namespace outrider
