// SPDX-License-Identifier: Apache-2.0
// The header `traceparent` of W3C Trace Context, level 1. Pure functions over untrusted text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace outrider {

// Ids are lower-case hexadecimal digits, not all zero.
struct TraceContext {
  std::string trace_id;        // 32 digits: the trace that the request belongs to
  std::string parent_id = {};  // 16 digits: the caller's span; empty: the trace begins here
  std::string span_id = {};    // 16 digits: the span of this server
  bool is_sampled = false;

  // "00-TRACE-SPAN-01", with this server's span.
  std::string header() const;
};

// nullopt: the text is no valid header, and the standard says to go on as if there were none. Versions after
// 00 are read as 00.
std::optional<TraceContext> parse_traceparent(std::string_view text);

}  // namespace outrider
