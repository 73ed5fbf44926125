// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace outrider {

// For ProxyOptions::watch: the network ends with the verdict that brings this many tokens of an output.
std::function<bool(bool is_to_target, const std::string& message)> up_to_token(uint32_t tokens);

}  // namespace outrider
