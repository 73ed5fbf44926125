// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <string>

#include "chat_template/jinja/ast.h"
#include "chat_template/jinja/runtime.h"

namespace outrider::jinja {

// Renders a template with the names of `variables` (string keys) defined. strftime_now() prints `now`. Errors
// name the line: the template refused its input, used an unsupported feature, or exceeded a limit.
Result<std::string> render(const Body& body, const Dict& variables, const Limits& limits, const std::tm& now);

}  // namespace outrider::jinja
