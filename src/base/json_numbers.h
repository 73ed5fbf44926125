// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// A copy of a JSON text whose numbers simdjson can all hold: an integer beyond 64 bits becomes the nearest
// double, and a number beyond all doubles becomes 10^308 of its sign. All other characters stay.
std::string with_holdable_numbers(std::string_view json);

}  // namespace outrider
