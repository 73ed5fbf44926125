// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "chat_template/jinja/ast.h"
#include "outrider/result.h"

namespace outrider::jinja {

// Parses a template. Errors name the line and what was expected, or the tag that is not supported. Nesting is
// bounded.
Result<Body> parse_template(std::string_view source);

}  // namespace outrider::jinja
