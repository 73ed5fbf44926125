// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "outrider/result.h"

namespace outrider {

// A page that shows what TraceLog::json() holds and needs nothing else: no network, no other file.
std::string trace_html(const nlohmann::ordered_json& trace);

// Whether the page can be written there; an existing file will be replaced.
Status check_trace_file(const std::filesystem::path& file);
Status write_trace_html(const std::filesystem::path& file, const nlohmann::ordered_json& trace);

}  // namespace outrider
