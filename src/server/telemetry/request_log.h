// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// What one call to the engine took and gave, for the log and the metrics. All choices together.
struct CallTotals {
  int choices = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t output_tokens = 0;
  std::optional<double> first_token_ms;  // since the request came
  double queue_ms = 0;                   // of the choice that waited longest
  double prompt_ms = 0;
  double decode_ms = 0;
  int64_t steps = 0;
  int64_t drafted = 0;
  int64_t accepted = 0;
  std::string finish_reason;  // of the last choice
  std::vector<std::string> ignored_fields;
};

struct RequestRecord {
  std::string id = {};
  std::string method = {};
  std::string route = {};  // as the router knows it; never what the client sent
  int status = 0;
  double total_ms = 0;
  std::string error = {};  // code or message of the answer
  std::optional<CallTotals> call = {};
};

// One JSON object per line on standard error, without prompts, answers and keys.
void log_request(const RequestRecord& record);
void log_event(std::string_view event, std::string_view detail);

}  // namespace outrider
