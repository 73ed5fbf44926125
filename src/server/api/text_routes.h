// SPDX-License-Identifier: Apache-2.0
// The routes that need no engine: bodies in, bodies out.
#pragma once

#include <string>
#include <string_view>

#include "server/api/generation_call.h"

namespace outrider {

// POST /tokenize: {"content" or "prompt": text} or {"messages": ..., "tools": ...}
// -> {"tokens": [...], "count", "max_model_len", "token_strs" where asked for}
ApiResult<std::string> tokenize_body(std::string_view body, const ServedModel& model,
                                     const ApiLimits& limits = {});

// POST /detokenize: {"tokens": [...]} -> {"content": text, "prompt": text}
ApiResult<std::string> detokenize_body(std::string_view body, const ServedModel& model,
                                       const ApiLimits& limits = {});

// POST /apply-template: {"messages": ..., "tools": ...}
// -> {"prompt": text, "tokens": [{"id", "text", "is_special"}]}
ApiResult<std::string> apply_template_body(std::string_view body, const ServedModel& model,
                                           const ApiLimits& limits = {});

// GET /v1/models and /v1/models/NAME. Error: 404, another name.
std::string models_body(const ServedModel& model);
ApiResult<std::string> model_body(std::string_view name, const ServedModel& model);

// GET /version
std::string version_body();

}  // namespace outrider
