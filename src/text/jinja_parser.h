// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "outrider/result.h"
#include "text/jinja_ast.h"

namespace outrider::jinja {

// Errors name the line and what was expected; tags that are not supported are named. Nesting is bounded.
Result<Body> parse_template(std::string_view source);

}  // namespace outrider::jinja
