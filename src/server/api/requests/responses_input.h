// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "chat_template/chat_template.h"
#include "server/api/api_limits.h"
#include "server/api/request_field.h"

namespace outrider {

struct ResponseInput {
  std::vector<ChatMessage> messages;
  std::vector<RequestField> tools;   // lists of tools that items bring
  std::vector<std::string> ignored;  // paths of items that say nothing to a model here
};

// Appends the input of /v1/responses, a string or an array of items, to a conversation. Neighbouring
// reasoning, text and calls of the assistant become one message.
ApiStatus read_response_input(const RequestField& field, const ApiLimits& limits, ResponseInput& input);

// The input as a JSON array of items.
std::string input_items_json(const RequestField& field);

}  // namespace outrider
