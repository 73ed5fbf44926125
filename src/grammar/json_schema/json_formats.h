// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace outrider {

// The regular expression that a string of a JSON schema format matches as a whole; nullopt: not supported.
std::optional<std::string> json_format_pattern(std::string_view format);

}  // namespace outrider
