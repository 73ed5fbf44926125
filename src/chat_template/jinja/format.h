// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "chat_template/jinja/runtime.h"

namespace outrider::jinja {

// Python's "format" % values with the conversions s d i x X o f e g %, flags, width and precision.
Result<Value> format_percent(Runtime& runtime, std::string_view format, const std::vector<Value>& values);

}  // namespace outrider::jinja
