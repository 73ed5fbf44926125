// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// Sends a state such as "READY=1" or "STOPPING=1" to systemd (Type=notify), as one datagram to `socket`: a
// path, or an abstract name that begins with @. The call does nothing if `socket` is empty or nobody listens.
void notify_manager(const std::string& socket, std::string_view state);

}  // namespace outrider
