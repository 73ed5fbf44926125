// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// Appends `text` in quotes and escaped. Each byte that is not valid UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);
// Whether `text` is a JSON object.
bool is_json_object(std::string_view text);

}  // namespace outrider
