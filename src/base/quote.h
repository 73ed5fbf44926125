// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// A name or text out of a file, fit for one line on a terminal: control bytes as \xNN, cut after 80 bytes.
std::string printable(std::string_view text);

// As printable(), in quotes, for messages.
std::string quote(std::string_view text);

}  // namespace outrider
