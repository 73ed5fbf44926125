// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chat_template/chat_template.h"
#include "server/api/request_field.h"

namespace outrider {

// Reads an object of variables for the template: names that are no input of every template, with strings,
// numbers or booleans.
ApiResult<TemplateValues> read_template_values(const RequestField& field);
// Reads enable_thinking, reasoning_effort or reasoning.effort, and chat_template_kwargs of a request, the
// last of which takes precedence. The effort "none" also sets enable_thinking to false.
ApiResult<TemplateValues> read_template_fields(const RequestField& root);

}  // namespace outrider
