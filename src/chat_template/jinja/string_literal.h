// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "outrider/result.h"

namespace outrider::jinja {

// What a Python string literal with this body (without its quotes) means. Escapes Python does not know stay
// as they are. Error: a numeric escape that is cut short or names no character.
Result<std::string> unescape_string(std::string_view body);

}  // namespace outrider::jinja
