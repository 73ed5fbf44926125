// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// `text` for a message: in quotes, on one line, cut to some 80 bytes.
std::string in_quotes(std::string_view text);

// The same without the quotes.
std::string one_line(std::string_view text);

}  // namespace outrider
