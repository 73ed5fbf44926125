// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace outrider {

// Names under which others reach this machine, in lower case: its host name, with ".local" and without its
// domain, and the addresses of its network interfaces, without zones.
std::vector<std::string> machine_names();

}  // namespace outrider
