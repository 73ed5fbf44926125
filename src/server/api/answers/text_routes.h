// SPDX-License-Identifier: Apache-2.0
// The routes that need no engine: from the body of a request to the body of its answer.
#pragma once

#include <string>
#include <string_view>

#include "server/api/api_error.h"
#include "server/api/api_limits.h"
#include "server/api/served_model.h"

namespace outrider {

// POST /tokenize: {"content" or "prompt": text} or {"messages": ..., "tools": ...}
// -> {"tokens": [...], "count", "max_model_len", "token_strs" if requested}
ApiResult<std::string> tokenize_body(std::string_view body, const ServedModel& model,
                                     const ApiLimits& limits = {});

// POST /detokenize: {"tokens": [...]} -> {"content": text, "prompt": text}
ApiResult<std::string> detokenize_body(std::string_view body, const ServedModel& model,
                                       const ApiLimits& limits = {});

// POST /apply-template: {"messages": ..., "tools": ...}
// -> {"prompt": text, "tokens": [{"id", "text", "is_special"}]}
ApiResult<std::string> apply_template_body(std::string_view body, const ServedModel& model,
                                           const ApiLimits& limits = {});

// The number of tokens that a chat, a response or a message would have as its prompt:
// POST /v1/chat/completions/input_tokens and /v1/responses/input_tokens -> {"object", "input_tokens"}
ApiResult<std::string> chat_tokens_body(std::string_view body, const ServedModel& model,
                                        const ApiLimits& limits = {});
ApiResult<std::string> response_tokens_body(std::string_view body, const ServedModel& model,
                                            const ApiLimits& limits = {});
// POST /v1/messages/count_tokens -> {"input_tokens"}
ApiResult<std::string> message_tokens_body(std::string_view body, const ServedModel& model,
                                           const ApiLimits& limits = {});

// POST /v1/models/load and unload: a server of one model refuses.
ApiResult<std::string> one_model_body(std::string_view body, const ServedModel& model,
                                      const ApiLimits& limits);

// GET /v1/models and /v1/models/NAME. Error: 404, the model has another name.
std::string models_body(const ServedModel& model);
ApiResult<std::string> model_body(std::string_view name, const ServedModel& model);

// GET /version
std::string version_body();

}  // namespace outrider
