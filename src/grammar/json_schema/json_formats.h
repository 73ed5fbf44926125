// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace outrider {

// The regular expression of a string format of JSON schema, for the whole string; nullopt: not supported.
std::optional<std::string> json_format_pattern(std::string_view format);

// "date, date-time, ..."
std::string supported_json_formats();

}  // namespace outrider
