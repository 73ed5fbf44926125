// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/trace_html.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "platform/durable_file.h"
#include "web/filled_html.h"

namespace outrider {

// The page without the trace. The build makes it from trace_page/.
extern const std::string_view kTraceHtml;

std::string trace_html(const nlohmann::ordered_json& trace) {
  return filled_html(kTraceHtml,
                     trace.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

Status check_trace_file(const std::filesystem::path& file) {
  std::error_code code;
  const auto status = std::filesystem::status(file, code);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return input_error(
        fmt::format("--trace: {} exists and is not a file; choose another FILE", file.string()));
  }
  if (const Status writable = check_writable(file); !writable.ok()) {
    return io_error(fmt::format("--trace: {}", writable.error().message));
  }
  return {};
}

Status write_trace_html(const std::filesystem::path& file, const nlohmann::ordered_json& trace) {
  return write_durably(file, trace_html(trace));
}

}  // namespace outrider
