// SPDX-License-Identifier: Apache-2.0
// Values as text, as Python's str() and repr() print them.
#pragma once

#include <string>

#include "chat_template/jinja/runtime.h"

namespace outrider::jinja {

// str(): what {{ value }} prints. Undefined prints nothing.
Result<std::string> to_text(Runtime& runtime, const Value& value);

}  // namespace outrider::jinja
