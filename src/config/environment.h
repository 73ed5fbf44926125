// SPDX-License-Identifier: Apache-2.0
// The only place that reads the process environment.
#pragma once

#include <map>
#include <string>

namespace outrider {

// All variables whose name begins with OUTRIDER_.
std::map<std::string, std::string> read_environment();

// NO_COLOR is set and not empty (no-color.org).
bool colour_refused();

}  // namespace outrider
