// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// Tells systemd (Type=notify) "READY=1", "STOPPING=1": one datagram to `socket`, a path, or an abstract name
// that begins with @. Nothing is said where `socket` is empty or nobody listens.
void notify_manager(const std::string& socket, std::string_view state);

}  // namespace outrider
