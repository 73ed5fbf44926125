// SPDX-License-Identifier: Apache-2.0
// Values as text in the form of Python's str() and repr().
#pragma once

#include <string>

#include "chat_template/jinja/runtime.h"

namespace outrider::jinja {

// str(), the text that {{ value }} prints. Undefined prints nothing.
Result<std::string> to_text(Runtime& runtime, const Value& value);

}  // namespace outrider::jinja
