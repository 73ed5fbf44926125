// SPDX-License-Identifier: Apache-2.0
// Messages for people, on standard error. The library itself logs only what a user can act upon.
#pragma once

#include <string_view>

namespace outrider {

void log_info(std::string_view message);
void log_warning(std::string_view message);

}  // namespace outrider
