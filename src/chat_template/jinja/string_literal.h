// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "outrider/result.h"

namespace outrider::jinja {

// The string of a Python literal with this body (without its quotes). Escapes that Python does not know stay
// as they are. Error: a numeric escape that is cut short or names no character.
Result<std::string> unescape_string(std::string_view body);

}  // namespace outrider::jinja
