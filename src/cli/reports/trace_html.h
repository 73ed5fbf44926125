// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "outrider/result.h"

namespace outrider {

// A self-contained HTML page that shows the result of TraceLog::json().
std::string trace_html(const nlohmann::ordered_json& trace);

// Error: the page cannot be written there. An existing file will be replaced.
Status check_trace_file(const std::filesystem::path& file);
Status write_trace_html(const std::filesystem::path& file, const nlohmann::ordered_json& trace);

}  // namespace outrider
