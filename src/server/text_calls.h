// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "server/api_error.h"
#include "server/served_model.h"

namespace outrider {

// Bodies in, bodies out.
ApiResult<std::string> tokenize_answer(const ServedModel& model, std::string_view body);
ApiResult<std::string> detokenize_answer(const ServedModel& model, std::string_view body);
ApiResult<std::string> apply_template_answer(const ServedModel& model, std::string_view body);

}  // namespace outrider
