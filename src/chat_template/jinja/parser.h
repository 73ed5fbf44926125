// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "chat_template/jinja/ast.h"
#include "outrider/result.h"

namespace outrider::jinja {

// Errors name the line and what was expected; tags that are not supported are named. Nesting is bounded.
Result<Body> parse_template(std::string_view source);

}  // namespace outrider::jinja
