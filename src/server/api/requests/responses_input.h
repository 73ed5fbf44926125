// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "chat_template/chat_template.h"
#include "server/api/api_limits.h"
#include "server/api/request_field.h"

namespace outrider {

// Appends the input of /v1/responses, a string or an array of items, to a conversation. Neighbouring
// reasoning, text and calls of the assistant become one message.
ApiStatus read_response_input(const RequestField& field, const ApiLimits& limits,
                              std::vector<ChatMessage>& messages);

// The input as a JSON array of items.
std::string input_items_json(const RequestField& field);

}  // namespace outrider
