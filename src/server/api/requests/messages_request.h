// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/api/requests/chat_request.h"

namespace outrider {

// Reads the body of /v1/messages, Anthropic's form of a chat, except for the constraints on its output.
ApiResult<ChatSpec> read_messages_request(const RequestField& root, const CallContext& context);

// Reads the part of such a body that the prompt consists of, and renders it. Adds the paths of what is left
// out to `ignored`.
ApiResult<ChatPrompt> make_messages_prompt(const RequestField& root, const ServedModel& model,
                                           const ApiLimits& limits, std::vector<std::string>& ignored);

}  // namespace outrider
