// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/api/requests/completion_request.h"

namespace outrider {

// Reads the body of llama-server's /infill: the text between "input_prefix" with "prompt" and "input_suffix",
// after the other texts of "input_extra". Error: the model has no tokens for filling in the middle.
ApiResult<CompletionSpec> read_infill_request(const RequestField& root, const CallContext& context);

// Reads the body of llama-server's /completion, except for the constraints on its output.
ApiResult<CompletionSpec> read_llama_completion(const RequestField& root, const CallContext& context);

}  // namespace outrider
