// SPDX-License-Identifier: Apache-2.0
// The only place that reads the process environment.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace outrider {

// All variables whose name begins with OUTRIDER_.
std::map<std::string, std::string> read_environment();

// $XDG_CACHE_HOME/outrider or ~/.cache/outrider; empty when neither variable is set.
std::filesystem::path user_cache_directory();

// $NOTIFY_SOCKET, where systemd wants to hear from a service; empty: it does not.
std::string notify_socket();

// NO_COLOR is set and not empty (no-color.org).
bool colour_refused();

}  // namespace outrider
